"""A rank's last step is lower than that of all others, which agree."""

from __future__ import annotations

from phalanx.blame.quorum import is_minority
from phalanx.blame.table import About, Accusation, RankTable, Words
from phalanx.model.ranks import name_ranks

ORDER = 120
ABOUT = (About.PEERS,)
_FEWEST = 3  # ranks, of which two agree
_REPORT = 1.0  # steps: one may just not have been printed yet


def accuse(table: RankTable) -> Accusation | None:
    """The few that are more than a step behind, where all ranks tell that they wait, or none does. Where a job went silent, one
    rank that alone is behind by any amount."""
    if table.shown_by and table.others:
        return None
    steps = {rank: state.last_step for rank, state in table.states.items() if state.last_step is not None}
    if len(steps) < _FEWEST:
        return None
    top = max(steps.values())
    behind = frozenset(rank for rank, step in steps.items() if step < top)
    is_alone = len(behind) == 1 and steps.keys() >= table.everyone and not _spoke(table)
    if not is_alone:
        behind = frozenset(rank for rank, step in steps.items() if step < top - _REPORT)
    if not is_minority(behind, steps):
        return None
    at = ", ".join(sorted({f"{steps[rank]:g}" for rank in behind}))
    return Accusation(behind, "steps-behind", f"{name_ranks(behind)} stopped at step {at}, the others at {top:g}")


def _spoke(table: RankTable) -> bool:
    return any(state.words is not Words.NONE for state in table.states.values())
