"""Which ranks stood elsewhere than most when a job stopped: at another line, at an earlier collective, at a lower step."""

from __future__ import annotations

import re
from collections import Counter

from phalanx.diagnose.history import History
from phalanx.model import EventKind

_POINT_TO_POINT = re.compile(r"\b(?:i?send|i?recv|batch_isend_irecv|send_object_list|recv_object_list)\(")


def at_another_line(waiting: frozenset[int], history: History) -> frozenset[int]:
    """Ranks that waited at another line of the user's code than most did: they took another path.

    Senders and receivers wait at different lines by nature; then the line says nothing.
    """
    stacks = {rank: stack for rank, stack in history.stacks.items() if rank in waiting}
    if any(_POINT_TO_POINT.search(stack[-1].source) for stack in stacks.values()):
        return frozenset()
    lines = {rank: [(frame.file, frame.line) for frame in reversed(stack)] for rank, stack in stacks.items()}
    for depth in range(2):  # who makes the same call from another line took another path too
        at = {rank: own[depth] if depth < len(own) else None for rank, own in lines.items()}
        counts = Counter(at.values())
        if len(counts) > 1:
            break
    common, most = counts.most_common(1)[0] if stacks else (None, 0)
    if len(counts) != 2 or most * 2 <= len(at):
        return frozenset()  # no majority: nobody can say which path is the right one
    return frozenset(rank for rank, place in at.items() if place != common)


def behind_in_sequence(history: History) -> frozenset[int]:
    """Ranks whose last collective has a lower number than that of most others."""
    last: dict[int, int] = {}
    for event in history.seen.events:
        if event.kind is EventKind.TIMEOUT and event.rank is not None and "seq" in event.data:
            number = int(event.data["seq"])
            last[event.rank] = min(last.get(event.rank, number), number)
    if len(set(last.values())) < 2:
        return frozenset()
    # The common number is the one most ranks wait at; a rank below it has not come, one above it went ahead.
    common, _ = Counter(last.values()).most_common(1)[0]
    return frozenset(rank for rank, number in last.items() if number != common)


def behind_in_steps(history: History) -> frozenset[int]:
    """Ranks that printed a lower last step than all the others, which agree."""
    steps = {rank.number: rank.last_step for rank in history.world.ranks if rank.last_step is not None}
    if len(steps) < 3 or len(set(steps.values())) < 2:
        return frozenset()
    top = max(steps.values())
    behind = frozenset(rank for rank, step in steps.items() if step < top - 1)
    return behind if len(behind) * 2 < len(steps) else frozenset()


def a_step_behind(history: History) -> frozenset[int]:
    """The one rank whose last step is lower than that of all others, which agree: where a job stands still, a step is enough."""
    steps = {rank.number: rank.last_step for rank in history.world.ranks if rank.last_step is not None}
    if len(steps) < 3 or steps.keys() < history.world.all_ranks:
        return frozenset()
    behind = frozenset(rank for rank, step in steps.items() if step < max(steps.values()))
    return behind if len(behind) == 1 else frozenset()
