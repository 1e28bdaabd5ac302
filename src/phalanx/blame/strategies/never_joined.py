"""A rank left no sign of the call that the others waited in, where the evidence would have shown one."""

from __future__ import annotations

from phalanx.blame.quorum import is_minority
from phalanx.blame.table import About, Accusation, Doing, RankTable, Words
from phalanx.model.ranks import name_ranks

ORDER = 100
ABOUT = (About.PEERS, About.CALLS)


def accuse(table: RankTable) -> Accusation | None:
    """First the ranks without any line, where all others are accounted for; then those that went quiet."""
    waiting = table.shown_by
    if any(table.state(rank).words is Words.OWN for rank in table.others):
        return None  # somebody failed by itself: the others were taken down with it
    quiet = frozenset(rank for rank in table.others if table.state(rank).words is Words.NONE)
    unseen = table.ranks_that(Doing.UNSEEN) - waiting
    unaccounted = frozenset(rank for rank in quiet if table.state(rank).ending is None)
    # where others are silent, too, silence is no sign
    candidates = [unseen] if unaccounted == unseen else []
    candidates += [quiet] if table.about is About.PEERS else []
    for absent in candidates if waiting else ():
        if absent and absent <= table.coverage.ranks and is_minority(absent, table.everyone, directed=True):
            because = (
                f"no sign of {name_ranks(absent)} in {table.coverage.by}, which shows {len(waiting)} others waiting"
            )
            return Accusation(absent, "never-joined", because)
    return None
