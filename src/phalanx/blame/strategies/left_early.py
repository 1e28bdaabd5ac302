"""A rank ended well while others still waited for it."""

from __future__ import annotations

from phalanx.blame.quorum import is_minority
from phalanx.blame.table import About, Accusation, Doing, RankTable
from phalanx.model.ranks import name_ranks

ORDER = 50
ABOUT = (About.PEERS, About.CALLS, About.STALL)


def accuse(table: RankTable) -> Accusation | None:
    """The few that left: they had less data, or took a shorter way."""
    left = table.ranks_that(Doing.LEFT) - table.shown_by
    if table.about is About.STALL:  # whoever is gone, while somebody waits or gives no stack
        left = table.ranks_that(Doing.LEFT, Doing.GONE) if table.ranks_that(Doing.WAITING, Doing.SEEN) else frozenset()
    if not is_minority(left, table.everyone, directed=True):
        return None
    return Accusation(left, "left-early", f"{name_ranks(left)} ended with status 0 while others waited")
