"""Ranks failed to meet, and one of them states another world, model or amount of data than all others."""

from __future__ import annotations

from phalanx.blame.quorum import is_minority
from phalanx.blame.table import About, Accusation, RankTable
from phalanx.model.ranks import name_ranks

ORDER = 140
ABOUT = (About.PEERS, About.CALLS)


def accuse(table: RankTable) -> Accusation | None:
    """The one that differs."""
    odd = {rank: state.states_otherwise for rank, state in table.states.items() if state.states_otherwise}
    if not is_minority(odd, table.everyone):
        return None
    return Accusation(
        frozenset(odd), "config-outlier", f"{name_ranks(odd)} states {', '.join(sorted(set(odd.values())))}"
    )
