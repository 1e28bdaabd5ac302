"""Some ranks still connect while others have met: who has met its peers need not wait for those that have not."""

from __future__ import annotations

from phalanx.blame.table import CONNECTING, About, Accusation, Doing, RankTable

ORDER = 85
ABOUT = (About.STALL,)


def accuse(table: RankTable) -> Accusation | None:
    """Nobody, unless all that are left connect."""
    connecting = table.groups.get(CONNECTING, {}).keys()
    others = table.ranks_that(Doing.WAITING, Doing.RUNNING, Doing.DATA)
    if not connecting or connecting == others:
        return None
    return Accusation(frozenset(), "still-starting", "some ranks connect, and others have met already")
