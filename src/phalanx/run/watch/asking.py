"""Asks the watch inside a rank over its socket: for its stacks, where ptrace is forbidden, and for its flight recorder."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

from phalanx.run.watch.inside import phalanx_socket as inside

_MOST = 64 << 20
_LISTED = re.compile(r"@phalanx\.inside\.(\d+)$", re.MULTILINE)


def ask_inside(pid: int, what: str = "stacks", timeout: float = 3.0) -> dict[str, Any] | None:
    """The answer of the process; None if it has no watch inside, does not answer, or somebody else has its name."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(timeout)
            line.connect(inside.NAME % pid)
            credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, inside.CREDENTIALS.size)
            if inside.CREDENTIALS.unpack(credentials)[0] not in (0, pid):  # 0: it lives where we cannot see processes
                return None
            line.sendall(json.dumps({"ask": what}).encode() + b"\n")
            answer = _all_of(line)
    except OSError:
        return None
    try:
        told = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) and told.get("schema") == inside.SCHEMA else None


def _all_of(line: socket.socket) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while (piece := line.recv(1 << 16)) and size <= _MOST:
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def who_can_be_asked() -> list[int]:
    """The processes of this network namespace that have such a socket, by their number in their own process namespace."""
    try:
        return sorted(int(pid) for pid in _LISTED.findall(Path("/proc/net/unix").read_text(encoding="ascii")))
    except (OSError, ValueError):
        return []
