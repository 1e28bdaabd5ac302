"""The last lines of the ranks' own output, where it goes to files: of each rank, or one file for all of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from phalanx.attaching.evidence import Piece, Scene
from phalanx.model.bundle import JOB_OUTPUT, OUTPUT
from phalanx.sources.secrets import redact

_TAIL = 128 << 10


def collect(scene: Scene) -> Iterator[Piece]:
    """One piece a file."""
    owners: dict[tuple[int, int], list[tuple[int, Path]]] = {}
    for one in scene.job.ranks:
        for stream in (1, 2):
            path = Path(f"/proc/{one.process.pid}/fd/{stream}")
            try:
                told = path.stat()
            except OSError:
                continue
            if stat.S_ISREG(told.st_mode) and told.st_size:
                owners.setdefault((told.st_dev, told.st_ino), []).append((one.identity.rank, path))
    seen: dict[int | None, int] = {}
    for found in owners.values():
        ranks = {rank for rank, _ in found}
        rank = found[0][0] if len(ranks) == 1 else None
        number = seen[rank] = seen.get(rank, -1) + 1
        name = OUTPUT if rank is not None else JOB_OUTPUT
        name = name if not number else name.replace(".log", f"-{number}.log")
        try:
            yield Piece(name, str(found[0][1].readlink()), rank, tail_of(found[0][1]))
        except OSError:
            continue


def tail_of(path: Path, most: int = _TAIL) -> str:
    """The end of a file from a line start, without secrets."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - most, 0))
        data = file.read(most)
    if size > most:
        data = data[data.find(b"\n") + 1 :]
    return redact(data.decode("utf-8", "replace"))
