"""The stacks of all ranks, those alike together: `61 ranks in all_reduce at train.py:88, 3 in evaluate() at train.py:131`."""

from __future__ import annotations

from dataclasses import dataclass

from phalanx.attaching.looks import JobMotion, own_frame
from phalanx.model import Frame


@dataclass(frozen=True, slots=True)
class StackGroup:
    """Ranks whose main threads have the same stack, outermost frame first."""

    ranks: tuple[int, ...]
    frames: tuple[Frame, ...]
    doing: str
    call: str
    place: Frame | None


def grouped_stacks(motion: JobMotion) -> list[StackGroup]:
    """Largest first; a rank without a stack is in a group of its own kind."""
    groups: dict[tuple[tuple[Frame, ...], str, str], list[int]] = {}
    for rank, one in sorted(motion.ranks.items()):
        frames = one.stacks.main.frames if one.stacks.main is not None else ()
        groups.setdefault((frames, one.doing.value, one.position.call), []).append(rank)
    found = [
        StackGroup(tuple(ranks), frames, doing, call, own_frame(frames))
        for (frames, doing, call), ranks in groups.items()
    ]
    return sorted(found, key=lambda group: (-len(group.ranks), group.ranks))
