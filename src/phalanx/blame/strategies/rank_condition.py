"""A rank failed at a line under a condition on the rank, while others failed on the common path."""

from __future__ import annotations

from phalanx.blame.quorum import is_minority
from phalanx.blame.table import About, Accusation, RankTable
from phalanx.model.ranks import name_ranks

ORDER = 95
ABOUT = (About.PEERS, About.CALLS)


def accuse(table: RankTable) -> Accusation | None:
    """Those that the source sent aside: calls that did not fit were made by them."""
    stood = {rank: state for rank, state in table.states.items() if state.stack}
    aside = frozenset(rank for rank, state in stood.items() if state.condition)
    if not aside or not stood.keys() - aside or not is_minority(aside, table.everyone, directed=True):
        return None
    if any(stood[rank].is_exchanging for rank in aside):
        return None
    condition = stood[min(aside)].condition
    return Accusation(
        aside, "rank-condition", f"{name_ranks(aside)} under `{condition}`, the others on the common path"
    )
