"""Ranks wait in a call that a condition on the rank led them to, while at least as many others, under none, are not in it."""

from __future__ import annotations

from phalanx.blame.table import About, Accusation, Doing, RankTable
from phalanx.model.ranks import name_ranks

ORDER = 30
ABOUT = (About.PEERS, About.CALLS, About.STALL)


def accuse(table: RankTable) -> Accusation | None:
    """Those that made the call alone. Sends and receives stand under such conditions by nature."""
    alone, others = table.shown_by, table.others
    if not alone or len(others) < len(alone):
        return None
    states = [table.state(rank) for rank in alone]
    if not all(state.condition and not state.is_exchanging for state in states):
        return None
    rest = [table.state(rank) for rank in others]
    if any(state.condition or state.doing not in (Doing.LEFT, Doing.RUNNING, Doing.DATA) for state in rest):
        return None
    because = f"{name_ranks(alone)} under `{states[0].condition}`, the others not in the call"
    return Accusation(alone, "came-alone", because)
