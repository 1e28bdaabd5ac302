"""A rank is in its own code, or waits for its data, while the others wait for it in a collective."""

from __future__ import annotations

from phalanx.blame.quorum import is_minority
from phalanx.blame.table import About, Accusation, Doing, RankTable
from phalanx.model.ranks import name_ranks

ORDER = 80
ABOUT = (About.PEERS, About.STALL)


def accuse(table: RankTable) -> Accusation | None:
    """The few that are not in the collective that the others are in."""
    waiting = table.ranks_that(Doing.WAITING)
    outside = table.ranks_that(Doing.RUNNING, Doing.DATA) - table.shown_by
    if not waiting or not is_minority(outside, waiting | outside, directed=True):
        return None
    places = sorted({line.place for rank in outside for line in table.state(rank).stack[-1:]})
    because = f"{name_ranks(outside)} outside of the collective{' at ' + ', '.join(places) if places else ''}"
    return Accusation(outside, "outside", because)
