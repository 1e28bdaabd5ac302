"""A rank raised an exception of its own, and the others only lost it."""

from __future__ import annotations

from phalanx.blame.quorum import is_minority
from phalanx.blame.table import About, Accusation, RankTable, Words
from phalanx.blame.waves import first_of
from phalanx.model.ranks import name_ranks

ORDER = 45
ABOUT = (About.PEERS,)


def accuse(table: RankTable) -> Accusation | None:
    """The first of those whose words are not a victim's."""
    first = first_of((rank for rank in table.others if table.state(rank).words is Words.OWN), table)
    if not is_minority(first, table.everyone, directed=True):
        return None
    return Accusation(first, "raised", f"{name_ranks(first)} raised an exception of its own")
