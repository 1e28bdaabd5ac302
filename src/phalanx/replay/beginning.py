"""Where a replay begins: at the script's start, or at a checkpoint that every rank concerned has whole."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from phalanx.replay.recordings import Recording, ReplayError

_FOLDER = re.compile(r"checkpoint-(\d+)")


def checkpoints_in(record: Path) -> list[int]:
    """The steps after which whole checkpoints lie in a rank's record."""
    if not record.is_dir():
        return []
    found = [
        int(match[1])
        for path in record.iterdir()
        if (match := _FOLDER.fullmatch(path.name)) and (path / "state.json").is_file()
    ]
    return sorted(found)


def begin_at(recording: Recording, ranks: Iterable[int], wish: int | None) -> int:
    """The step to begin at, 0 for the start: the nearest checkpoint at or before the wish. Raises ReplayError."""
    common: set[int] | None = None
    for rank in ranks:
        own = set(checkpoints_in(recording.folder(rank)))
        common = own if common is None else common & own
    steps = sorted(common or ())
    if recording.mode == "ring":
        # What lies before the oldest checkpoint is not in the ring any more, unless the job ended before it turned over.
        usable = [step for step in steps if wish is None or step <= wish]
        if steps and not usable:
            raise ReplayError(f"--from {wish}: the ring begins at step {steps[0]}; there is nothing before it")
        return (usable[0] if wish is None else usable[-1]) if usable else 0
    if wish is None:
        return 0
    return max((step for step in steps if step <= wish), default=0)
