"""A rank is at another number of a group's calls than those that wait for it."""

from __future__ import annotations

from phalanx.blame.quorum import is_minority, odd_ones
from phalanx.blame.table import UNNAMED, About, Accusation, RankTable
from phalanx.model.ranks import name_ranks

ORDER = 70
ABOUT = (About.PEERS, About.CALLS)


def accuse(table: RankTable) -> Accusation | None:
    """Within one group: the ranks at another number than most; of a pair the one that made fewer calls."""
    for group, calls in table.groups.items():
        if any(call.is_point_to_point for call in calls.values()):
            continue  # each rank counts its own sends and receives
        reached = {rank: number for rank, call in calls.items() if (number := call.number) is not None}
        if len(set(reached.values())) < 2:
            continue
        odd = odd_ones(reached, reached)
        most = next((number for rank, number in reached.items() if rank not in odd), 0)
        # who waits in a later call, and tells how many it made, has made the one that the others wait in
        odd = frozenset(rank for rank in odd if reached[rank] < most or calls[rank].last_enqueued is None)
        if len(reached) == 2:
            odd = frozenset({min(reached, key=lambda rank: reached[rank])})
        if group == UNNAMED and len(odd) > 1:
            continue  # they may be of another group
        if is_minority(odd, reached, directed=True) and odd < table.everyone:
            rest = max(number for rank, number in reached.items() if rank not in odd)
            own = ", ".join(sorted({str(reached[rank]) for rank in odd}))
            where = f" of group {group}" if group not in ("", UNNAMED) else ""
            because = f"{name_ranks(odd)} at call {own}{where}, the others at {rest}"
            return Accusation(odd, "behind", because)
    return None
