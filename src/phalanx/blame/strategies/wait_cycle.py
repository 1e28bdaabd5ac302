"""Ranks that send and receive wait for one another in a circle, or ranks wait crosswise in calls of several groups."""

from __future__ import annotations

from collections.abc import Mapping

from phalanx.blame.table import About, Accusation, RankTable
from phalanx.model.ranks import name_ranks

ORDER = 75
ABOUT = (About.STALL,)


def accuse(table: RankTable) -> Accusation | None:
    """Nobody: no call of others can end the circle, and each of its ranks is as near to the fault as the next."""
    found = circles({rank: call.peer for rank, call in table.exchanges.items()})
    for circle in found:
        ways = {table.exchanges[rank].facts.get("way") for rank in circle}
        tags = {table.exchanges[rank].facts.get("tag") for rank in circle}
        if len(circle) == 2 and len(ways) == 2 and len(tags) == 1:
            continue  # one sends what the other receives: something else holds that up
        return Accusation(frozenset(), "wait-cycle", f"{name_ranks(circle)} wait for one another")
    return None


def circles(partners: Mapping[int, int | None]) -> list[tuple[int, ...]]:
    """Ranks each of which waits for the next, the last for the first."""
    found: list[tuple[int, ...]] = []
    seen: set[int] = set()
    for start in sorted(partners):
        way: list[int] = []
        rank: int | None = start
        while rank is not None and rank in partners and rank not in seen:
            seen.add(rank)
            way.append(rank)
            rank = partners[rank]
        if rank in way:
            found.append(tuple(way[way.index(rank) :]))
    return found
