"""A rank made another call than most as the same number of a group: another operation, size, type, name or root."""

from __future__ import annotations

from collections.abc import Mapping

from phalanx.blame.quorum import is_minority, odd_ones
from phalanx.blame.table import About, Accusation, GroupCall, RankTable
from phalanx.model.ranks import name_ranks

ORDER = 35
ABOUT = (About.PEERS, About.CALLS, About.STALL)


def accuse(table: RankTable) -> Accusation | None:
    """Of each group, those whose call differs from what more than half made; else the one rank whose call is not known,
    where it is certain that calls differed and all known ones are alike."""
    for group, calls in table.groups.items():
        if any(call.is_point_to_point for call in calls.values()):
            continue  # who sends and who receives ask for different things by nature
        whole = calls.keys() if group else table.everyone
        for name, told in _told(calls).items():
            odd = odd_ones(told, whole)
            if is_minority(odd, whole):
                other = next(value for rank, value in told.items() if rank not in odd)
                own = ", ".join(sorted({told[rank] for rank in odd}))
                because = f"{name_ranks(odd)} called with {name} {own}, the others with {other}"
                return Accusation(odd, "other-call", because)
        unknown = table.everyone - calls.keys()
        alike = all(len(set(told.values())) == 1 for told in _told(calls).values())
        if table.calls_differ and len(unknown) == 1 and len(calls) > 1 and alike:
            return Accusation(unknown, "other-call", "the calls of all others are known, and fit one another")
    return None


def _told(calls: Mapping[int, GroupCall]) -> dict[str, dict[int, str]]:
    """By what is known of a call, its value on each rank; only calls of one number are compared."""
    numbers = {call.seq for call in calls.values()}
    if len(numbers) > 1:
        return {}
    found: dict[str, dict[int, str]] = {}
    for rank, call in calls.items():
        for name, value in {"operation": call.op, "sizes": call.sizes, **call.facts}.items():
            if value:
                found.setdefault(name, {})[rank] = value
    return found
