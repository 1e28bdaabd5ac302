"""A rank ended by itself, and the others only lost it."""

from __future__ import annotations

import signal

from phalanx.blame.quorum import is_minority
from phalanx.blame.table import About, Accusation, RankTable, Words
from phalanx.blame.waves import first_of
from phalanx.model.ranks import name_ranks

ORDER = 40
ABOUT = (About.PEERS, About.CALLS)
_EXCEPTION = 1  # the status of victims, too: an exception about a lost peer ends a process like any other


def accuse(table: RankTable) -> Accusation | None:
    """The first of those that ended by themselves, unless they are too many to have been the ones that others lost."""
    died = {
        rank: state.ending
        for rank in table.others
        if (state := table.state(rank)).ending is not None and state.ending.is_own and state.words is not Words.VICTIM
    }
    if (
        table.about is About.CALLS
    ):  # an exception may be the other side of the same misfit, as may an abort of a pair be
        no_proof = (_EXCEPTION, -signal.SIGABRT) if table.calls_differ and len(table.everyone) == 2 else (_EXCEPTION,)
        died = {rank: ending for rank, ending in died.items() if ending.code not in no_proof}
    first = first_of(died, table)
    if not is_minority(first, table.everyone, directed=True):
        return None
    codes = sorted({died[rank].code for rank in first})
    because = f"{name_ranks(first)} ended by itself with {', '.join(map(str, codes))}"
    return Accusation(first, "died-first", because)
