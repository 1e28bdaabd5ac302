"""Ranks wait in calls of several groups, each missing from another's: those that only wait in one of them have no say."""

from __future__ import annotations

from phalanx.blame.strategies.wait_chain import waiting_for
from phalanx.blame.table import About, Accusation, RankTable

ORDER = 87
ABOUT = (About.STALL,)


def accuse(table: RankTable) -> Accusation | None:
    """Nobody: lines of code do not tell which of two orders is the common one."""
    waiting = waiting_for(table)
    between = {
        call.group for rank in waiting for call in table.state(rank).calls if call.group and call.seq is not None
    }
    return Accusation(frozenset(), "crosswise", "ranks wait crosswise in several groups") if len(between) > 1 else None
