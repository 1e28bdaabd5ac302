"""Starts a recorded rank again, alone or among its peers, and reads what the replay found."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phalanx.replay.beginning import begin_at
from phalanx.replay.command import Command, inside_variables, variables_of
from phalanx.replay.record import INSIDE
from phalanx.replay.recordings import Recording, ReplayError, lines_of


@dataclass(frozen=True, slots=True)
class Wish:
    """How to replay."""

    first: int | None = None
    last: int = -1
    debugger: bool = False
    condition: str = ""
    trusts_objects: bool = False
    quiet: bool = False
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """What one replay of one rank found."""

    rank: int
    why: str  # it ended
    how: str  # script, exception, asked, recording, gap, other call
    exception: str
    step: int
    compared: int
    calls: int  # that the script made, those of steps that were passed over too
    recorded: int
    status: int
    folder: Path
    differences: tuple[dict[str, Any], ...] = field(default=())


def replay_rank(recording: Recording, rank: int, command: Command, wish: Wish, folder: Path) -> Replayed:
    """Run one rank alone."""
    _check_rank(recording, rank)
    process = _start(recording, rank, command, wish, folder, begin_at(recording, [rank], wish.first), {})
    try:
        status = process.wait(wish.timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        raise ReplayError(f"the replay of rank {rank} did not end within {wish.timeout:g} s") from None
    except KeyboardInterrupt:
        _end(process)
        raise
    return _read(rank, folder, status)


def replay_all(recording: Recording, command: Command, wish: Wish, folder: Path) -> list[Replayed]:
    """Run the whole job again, with real collectives, on this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    for rank in range(recording.size):
        _check_rank(recording, rank)
    folders = {rank: folder / f"rank{rank}" for rank in range(recording.size)}
    begin = begin_at(recording, folders, wish.first)
    started = {
        rank: _start(recording, rank, command, wish, folders[rank], begin, meeting, with_peers=True) for rank in folders
    }
    found = []
    try:
        for rank, process in started.items():
            found.append(_read(rank, folders[rank], process.wait(wish.timeout)))
    except subprocess.TimeoutExpired:
        raise ReplayError(f"the replay of all ranks did not end within {wish.timeout:g} s") from None
    finally:
        for process in started.values():
            if process.poll() is None:
                _end(process)
    return found


def _start(
    recording: Recording,
    rank: int,
    command: Command,
    wish: Wish,
    folder: Path,
    begin: int,
    meeting: dict[str, str],
    with_peers: bool = False,
) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    told = {
        "replays": True,
        "rank": rank,
        "size": recording.size,
        "folder": str(recording.folder(rank).resolve()),
        "attempt": str(recording.attempt.resolve()),
        "result": str(folder.resolve()),
        "script": str(command.sources.resolve()),
        "seed": int(recording.ranks[rank].get("seed", 0)),
        "mode": recording.mode,
        "first": begin,
        "last": wish.last,
        "debugger": wish.debugger,
        "condition": wish.condition,
        "trusts_objects": wish.trusts_objects,
        "with_peers": with_peers,
    }
    variables = variables_of(recording.environment(rank), os.environ, command.sources) | meeting
    variables |= {"RANK": str(rank), "WORLD_SIZE": str(recording.size)}
    salt = str(recording.ranks[rank].get("software", {}).get("PYTHONHASHSEED", ""))
    variables |= {"PYTHONHASHSEED": salt} if salt.isdigit() else {}
    variables |= inside_variables(INSIDE, json.dumps(told), variables)
    output = subprocess.DEVNULL if wish.quiet else None
    return subprocess.Popen(
        command.argv, cwd=command.folder, env=variables, stdout=output, stderr=output, start_new_session=not _asks(wish)
    )


def _asks(wish: Wish) -> bool:
    """Whether a person will type into it: then it must stay in the terminal's session."""
    return wish.debugger or bool(wish.condition)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        process.kill()
    process.wait()


def _check_rank(recording: Recording, rank: int) -> None:
    if rank in recording.ranks:
        return
    have = ", ".join(map(str, recording.ranks))
    raise ReplayError(f"rank {rank} left no recording in {recording.attempt}; there are ranks {have}")


def _read(rank: int, folder: Path, status: int) -> Replayed:
    try:
        found = json.loads((folder / "replayed.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if status < 0 and (folder / "calls.jsonl").is_file():
            return _read_of_the_dead(rank, folder, status)
        raise ReplayError(
            f"the replay of rank {rank} ended with status {status} before it could compare anything (see its output above)"
        ) from error
    return Replayed(
        rank=rank,
        why=found["why"],
        how=found["how"],
        exception=found["exception"],
        step=found["step"],
        compared=found["compared"],
        calls=found["calls"],
        recorded=found["recorded"],
        status=status,
        folder=folder,
        differences=tuple(found["differences"]),
    )


def _read_of_the_dead(rank: int, folder: Path, status: int) -> Replayed:
    """The script died by a signal: its log says how far it came."""
    name = signal.Signals(-status).name
    lines = lines_of(folder)
    calls = [line for line in lines if line.get("k") == "call"]
    return Replayed(
        rank=rank,
        why=f"the script was ended by {name}",
        how="exception",
        exception=f"ended by {name}",
        step=max((int(line.get("s", 0)) for line in lines), default=0),
        compared=len(calls),
        calls=len(calls),
        recorded=len(calls),
        status=status,
        folder=folder,
        differences=tuple(line for line in lines if line.get("k") == "difference"),
    )
