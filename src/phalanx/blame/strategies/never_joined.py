"""A rank left no sign of the call that the others waited in, where the evidence would have shown one."""

from __future__ import annotations

from phalanx.blame.quorum import is_minority
from phalanx.blame.table import About, Accusation, Doing, RankTable, Words
from phalanx.model.ranks import name_ranks

ORDER = 100
ABOUT = (About.PEERS, About.CALLS)


def accuse(table: RankTable) -> Accusation | None:
    """First the ranks without any line; then those that went quiet while all others say that they waited."""
    waiting = table.shown_by
    covered = table.coverage.ranks
    unseen = table.ranks_that(Doing.UNSEEN)
    quiet = frozenset(rank for rank in table.others if table.state(rank).words is Words.NONE)
    for absent in (unseen - waiting, quiet if table.about is About.PEERS else frozenset()):
        if not absent or not waiting or not absent <= covered:
            continue
        if is_minority(absent, table.everyone, directed=True):
            because = (
                f"no sign of {name_ranks(absent)} in {table.coverage.by}, which shows {len(waiting)} others waiting"
            )
            return Accusation(absent, "never-joined", because)
    return None
