"""PyTorch's flight-recorder dumps on disk, and the debug pipe by which a rank is asked to write one.

ProcessGroupNCCL writes `<TORCH_NCCL_DEBUG_INFO_TEMP_FILE><rank>` (or TORCH_FR_DUMP_TEMP_FILE) when a collective times out, and whenever
something is written into the pipe `<TORCH_NCCL_DEBUG_INFO_PIPE_FILE><rank>.pipe`, which it polls. Writing there makes the process act, so
that is done only where the user said so (`--dump`).
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from phalanx.attaching.discovery import FoundRank
from phalanx.attaching.evidence import Piece, Scene, packed
from phalanx.model.ranks import name_ranks

_FILES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_PIPE = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
_MOST = 16 << 20
_ANSWER_S = 8.0
_SETTLED_S = 0.3


def collect(scene: Scene) -> Iterator[Piece]:
    """One dump a rank, if it was written after the job fell silent."""
    pipes = {one.identity.rank: path for one in scene.job.ranks if (path := _pipe(scene, one)) is not None}
    since = scene.silent_since
    if pipes and scene.may_ask:
        since = min(since, time.time())
        asked = [rank for rank, path in pipes.items() if _ask(path)]
        _wait(scene, [one for one in scene.job.ranks if one.identity.rank in asked], time.time())
    elif pipes:
        scene.notes.append(f"{name_ranks(sorted(pipes))}: a debug pipe is there; --dump asks for the flight recorder")
    for one in scene.job.ranks:
        path = _newest(scene, one)
        if path is None or path.stat().st_mtime < since or path.stat().st_size > _MOST:
            continue
        rank = one.identity.rank
        yield Piece("collectives-1.pickle", _as_seen(path), rank, packed=packed(path.read_bytes()))


def _pipe(scene: Scene, one: FoundRank) -> Path | None:
    stem = (one.process.variables or {}).get(_PIPE)
    if not stem:
        return None
    path = scene.path_of(one.process.pid, f"{stem}{one.identity.rank}.pipe")
    try:
        return path if stat.S_ISFIFO(path.stat().st_mode) else None
    except OSError:
        return None


def _ask(pipe: Path) -> bool:
    """Any byte asks. Nobody at the other end is no error: then nothing is asked."""
    try:
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.write(descriptor, b"1") == 1
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _wait(scene: Scene, asked: list[FoundRank], since: float) -> None:
    """Until all have written theirs, and their sizes stay."""
    deadline, sizes = time.monotonic() + _ANSWER_S, dict[int, int]()
    while asked and time.monotonic() < deadline:
        time.sleep(_SETTLED_S)
        found = {one.identity.rank: path.stat() for one in asked if (path := _newest(scene, one)) is not None}
        now = {rank: told.st_size for rank, told in found.items() if told.st_mtime >= since - 1}
        if len(now) == len(asked) and now == sizes:
            return
        sizes = now


def _newest(scene: Scene, one: FoundRank) -> Path | None:
    """The newest dump of a rank, at the place that its variables name or that PyTorch takes by itself."""
    variables: Mapping[str, str] = one.process.variables or {}
    home = variables.get("HOME", "/tmp")
    stems = [variables[name] for name in _FILES if variables.get(name)]
    stems = stems or [f"{home}/.cache/torch/comm_lib_trace_rank_", "/tmp/nccl_trace_rank_"]
    found = []
    for stem in stems:
        path = scene.path_of(one.process.pid, f"{stem}{one.identity.rank}")
        try:
            if stat.S_ISREG(path.stat().st_mode):
                found.append((path.stat().st_mtime, path))
        except OSError:
            continue
    return max(found)[1] if found else None


def _as_seen(path: Path) -> str:
    parts = path.parts
    return "/" + "/".join(parts[4:]) if len(parts) > 4 and parts[3] == "root" else "/".join(parts[4:])
