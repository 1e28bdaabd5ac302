"""All that wait do so in sends and receives: the rank that the chains end at is in its own code."""

from __future__ import annotations

from phalanx.blame.quorum import is_minority
from phalanx.blame.table import About, Accusation, Doing, RankTable
from phalanx.model.ranks import name_ranks

ORDER = 77
ABOUT = (About.STALL,)


def accuse(table: RankTable) -> Accusation | None:
    """Who waits for nobody is what the chains end at, whatever else the rest does."""
    waiting = table.ranks_that(Doing.WAITING)
    if not waiting or waiting != table.exchanges.keys():
        return None
    peers = frozenset(call.peer for call in table.exchanges.values() if call.peer is not None)
    ends = peers & table.ranks_that(Doing.RUNNING, Doing.DATA)
    if not is_minority(ends, table.everyone, directed=True):
        return None
    return Accusation(ends, "awaited-peer", f"{name_ranks(ends)} outside of the exchange that others wait in")
