"""Asks the watch inside a rank over its socket: for its stacks, where ptrace is forbidden, and for its flight recorder."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phalanx.model.bundle import PROCESS
from phalanx.run.watch.inside import phalanx_socket as inside

_MOST = 64 << 20


def ask_inside(pid: int, what: str = "stacks", timeout: float = 3.0, **more: object) -> dict[str, Any] | None:
    """The answer of the process; None if it has no watch inside, does not answer, or somebody else has its name."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(timeout)
            line.connect(inside.NAME % pid)
            credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, inside.CREDENTIALS.size)
            if inside.CREDENTIALS.unpack(credentials)[0] not in (0, pid):  # 0: it lives where we cannot see processes
                return None
            line.sendall(json.dumps({"ask": what, **more}).encode() + b"\n")
            answer = _all_of(line)
    except OSError:
        return None
    try:
        told = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) and told.get("schema") == inside.SCHEMA else None


def tell_trackers(attempt: Path, report: Mapping[str, Any], text: str, timeout: float = 5.0) -> dict[int, list[str]]:
    """Let the ranks of this machine that still live put a verdict into the wandb, MLflow and TensorBoard runs that they have open; where
    each put it."""
    verdict = report.get("verdict")
    if not verdict or os.environ.get("PHALANX_TRACKERS", "1") in ("", "0", "off"):
        return {}
    facts = {"headline": verdict.get("headline"), "rule": verdict.get("rule"), "text": text[:20000]}
    facts["culprit_ranks"] = list(verdict.get("culprit_ranks") or ())[:256]
    found: dict[int, list[str]] = {}
    for file in sorted(attempt.glob(f"rank*/{PROCESS}")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            told = json.loads(file.read_text(encoding="utf-8"))
            if told.get("host") != os.uname().nodename:
                continue
            answer = ask_inside(told["pid"], "tell", timeout, **facts) or {}
            if answer.get("told"):
                found[int(told["rank"])] = list(answer["told"])
    return found


def _all_of(line: socket.socket) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while (piece := line.recv(1 << 16)) and size <= _MOST:
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)
