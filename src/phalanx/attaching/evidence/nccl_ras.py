"""What NCCL RAS tells (NCCL 2.24 and later): how many operations every rank has launched, and which processes do not answer.

A thread of NCCL in every rank listens on localhost:28028 or at NCCL_RAS_ADDR, and answers for all ranks of the job. Lines there and back:

CLIENT PROTOCOL 2     SERVER PROTOCOL 2
TIMEOUT 5             OK
VERBOSE STATUS        the report, until the connection is closed

From NCCL's sources; not run on GPUs.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path

from phalanx.attaching.evidence import Piece, Scene
from phalanx.model.bundle import RAS
from phalanx.run.watch.network import Tables, listening_ports

_PORT, _PROTOCOL = 28028, 2
_ANSWER_S = 10.0
_TIMEOUT_S = 5  # that RAS may take for processes that do not answer it
_MOST = 4 << 20


def collect(scene: Scene) -> Iterator[Piece]:
    """One report, from the first rank that listens: it tells of all."""
    tables: Tables = {}
    for one in scene.job.ranks:
        address = (one.process.variables or {}).get("NCCL_RAS_ADDR") or f"localhost:{_PORT}"
        host, _, port = address.rpartition(":")
        if not port.isdigit() or int(port) not in listening_ports(one.process.pid, tables):
            continue
        if not _is_our_network(one.process.pid):
            scene.notes.append(f"NCCL RAS at {address} is in the ranks' own network: attach inside of their container")
            return
        try:
            text = ask(host.strip("[]") or "localhost", int(port))
        except (OSError, ValueError) as error:
            scene.notes.append(f"NCCL RAS at {address}: {error}")
            return
        yield Piece(RAS, f"NCCL RAS at {address}", None, text)
        return


def _is_our_network(pid: int) -> bool:
    return Path(f"/proc/{pid}/ns/net").readlink() == Path("/proc/self/ns/net").readlink()


def ask(host: str, port: int, seconds: float = _ANSWER_S) -> str:
    """The report as text. Raises OSError or ValueError."""
    with socket.create_connection((host, port), timeout=seconds) as line, line.makefile("rwb") as stream:
        _say(stream, f"CLIENT PROTOCOL {_PROTOCOL}")
        told = stream.readline(256).decode("ascii", "replace").strip()
        if not told.upper().startswith("SERVER PROTOCOL "):
            raise ValueError(f"another service answers: {told[:60]!r}")
        _say(stream, f"TIMEOUT {_TIMEOUT_S}")
        if (told := stream.readline(256).decode("ascii", "replace").strip()) != "OK":
            raise ValueError(f"it refuses a time-out: {told[:60]!r}")
        _say(stream, "VERBOSE STATUS")
        text = stream.read(_MOST).decode("utf-8", "replace")
    if not text.strip():
        raise ValueError("it closed the connection without a report")
    return text


def _say(stream: BufferedIOBase, line: str) -> None:
    stream.write(f"{line}\n".encode())
    stream.flush()
