"""A rank is stopped by a signal or a debugger while others wait."""

from __future__ import annotations

from phalanx.blame.table import About, Accusation, Doing, RankTable
from phalanx.model.ranks import name_ranks

ORDER = 20
ABOUT = (About.PEERS, About.CALLS, About.STALL)


def accuse(table: RankTable) -> Accusation | None:
    """Every stopped rank: that needs no comparison with others."""
    stopped = table.ranks_that(Doing.STOPPED)
    if not stopped:
        return None
    return Accusation(stopped, "stopped", f"{name_ranks(stopped)} stopped by a signal while others wait")
