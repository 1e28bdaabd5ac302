"""A few ranks still made calls when all others had ended well: they made more calls, or had more data."""

from __future__ import annotations

from phalanx.blame.quorum import is_minority
from phalanx.blame.table import About, Accusation, RankTable
from phalanx.model.ranks import name_ranks

ORDER = 110
ABOUT = (About.PEERS,)


def accuse(table: RankTable) -> Accusation | None:
    """The ranks that waited, if they are few and nobody was left to join them."""
    if not all(table.state(rank).ended_well for rank in table.others):
        return None
    if not is_minority(table.shown_by, table.everyone, directed=True):
        return None
    return Accusation(
        table.shown_by, "outlasted", f"{name_ranks(table.shown_by)} made calls after all others had ended well"
    )
