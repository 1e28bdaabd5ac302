"""Where a replay begins: at the script's start, or at a state that was kept."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from phalanx.replay.recordings import Recording, ReplayError, lines_of

_FOLDER = re.compile(r"(checkpoint|snapshot)-(\d+)")


def states_in(record: Path, kind: str) -> list[int]:
    """The steps after which whole checkpoints, or a ring's snapshots, lie in a rank's record."""
    if not record.is_dir():
        return []
    found = [
        int(match[2])
        for path in record.iterdir()
        if (match := _FOLDER.fullmatch(path.name)) and match[1] == kind and (path / "state.json").is_file()
    ]
    return sorted(found)


def begin_at(recording: Recording, ranks: Collection[int], wish: int | None) -> int:
    """The step to begin at, 0 for the start: the nearest kept state at or before the wish. Raises ReplayError."""
    if recording.mode == "ring" and len(ranks) == 1:
        return _in_ring(recording, next(iter(ranks)), wish)
    common: set[int] | None = None
    for rank in ranks:
        own = set(states_in(recording.folder(rank), "checkpoint"))
        common = own if common is None else common & own
    if wish is None:
        return 0
    return max((step for step in common or () if step <= wish), default=0)


def _in_ring(recording: Recording, rank: int, wish: int | None) -> int:
    """A snapshot from which on every rank wrote its share, by when they wrote their rings."""
    written = [_written(recording.folder(one)) for one in recording.ranks]
    from_start = all(any(begin == 0 for begin, _ in own) for own in written)
    if from_start and not wish:
        return 0  # the rings had not turned over: everything is there from the start
    steps = states_in(recording.folder(rank), "snapshot")
    usable = [step for step in steps if all(any(begin <= step <= end for begin, end in own) for own in written)]
    if not usable:
        if from_start:
            return 0
        missing = [str(one) for one, own in zip(recording.ranks, written, strict=True) if not own]
        why = f"rank {', '.join(missing)} wrote nothing of its ring" if missing else "the rings have no step in common"
        raise ReplayError(f"{why}: rank {rank} cannot be replayed alone. --all replays the whole job from a checkpoint")
    if wish is None:
        return usable[0]
    before = [step for step in usable if step <= wish]
    if not before and from_start:
        return 0
    if not before:
        raise ReplayError(f"--from {wish}: the ring begins at step {usable[0]}; there is nothing before it")
    return before[-1]


def _written(record: Path) -> list[tuple[int, int]]:
    """The stretches of steps that a rank wrote."""
    return [(int(line["begin"]), int(line["s"])) for line in lines_of(record) if line.get("k") == "written"]
