"""Finds who failed first among several: by the number of the call they failed in, then by the clock."""

from __future__ import annotations

from collections.abc import Iterable

from phalanx.blame.table import RankTable

_APART = 2.0  # seconds: launchers tell whole ones, and check about once a second


def first_of(ranks: Iterable[int], table: RankTable) -> frozenset[int]:
    """Those of `ranks` that failed in the first wave; all of them where nothing tells them apart."""
    found = frozenset(ranks)
    for calls in table.groups.values():
        reached = {rank: calls[rank].number for rank in found if rank in calls}
        numbers = [number for number in reached.values() if number is not None]
        if len(numbers) == len(found) and len(set(numbers)) > 1:
            return frozenset(rank for rank, number in reached.items() if number == min(numbers))
    times = {rank: ending.at for rank in found if (ending := table.state(rank).ending) is not None}
    known = [at for at in times.values() if at is not None]
    if len(known) == len(found) and known and max(known) - min(known) >= _APART:
        return frozenset(rank for rank, at in times.items() if at is not None and at - min(known) < _APART)
    return found
