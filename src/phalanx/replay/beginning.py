"""Where a replay begins: at the script's start, or at a state that was kept."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

from phalanx.replay.recordings import Recording, ReplayError

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
    windows = _windows(recording)
    if any(begin == 0 for begin, _ in windows) and not wish:
        return 0  # the ring had not turned over: everything is there from the start
    steps = states_in(recording.folder(rank), "snapshot")
    usable = [step for step in steps if any(begin <= step <= end for begin, end in windows)]
    if not usable:
        if any(begin == 0 for begin, _ in windows):
            return 0
        raise ReplayError(f"the rings of the ranks have no step in common: rank {rank} cannot be replayed alone")
    if wish is None:
        return usable[0]
    before = [step for step in usable if step <= wish]
    if not before:
        raise ReplayError(f"--from {wish}: the ring begins at step {usable[0]}; there is nothing before it")
    return before[-1]


def _windows(recording: Recording) -> list[tuple[int, int]]:
    """The stretches of steps that all ranks wrote: the first of each, the second of each, and so on."""
    written: list[list[tuple[int, int]]] = []
    for rank in recording.ranks:
        own = []
        for text in (recording.folder(rank) / "calls.jsonl").read_text(encoding="utf-8").splitlines():
            if '"k":"written"' in text:
                line = json.loads(text)
                own.append((int(line["begin"]), int(line["s"])))
        written.append(own)
    return [(max(begin for begin, _ in one), min(end for _, end in one)) for one in zip(*written, strict=False)]
