"""A rank waits at another line of the user's code than most: it took another path."""

from __future__ import annotations

from phalanx.blame.quorum import is_minority, odd_ones
from phalanx.blame.table import About, Accusation, Line, RankTable
from phalanx.model.ranks import name_ranks

ORDER = 90
ABOUT = (About.PEERS, About.CALLS, About.STALL)
_DEPTHS = 2  # who makes the same call from another line took another path, too


def accuse(table: RankTable) -> Accusation | None:
    """Those at the one other line. Senders and receivers stand at different lines by nature."""
    if table.about is About.CALLS and not table.one_moment:
        return None  # what fails after the first failure fails wherever it is by then
    among = table.everyone if table.one_moment else table.shown_by
    states = [state for rank, state in table.states.items() if state.stack and rank in among]
    if any(state.is_exchanging for state in states):
        return None
    depths = 1 if table.about is About.STALL else _DEPTHS
    for depth in range(1, depths + 1):
        lines: dict[int, Line | None] = {
            state.rank: state.stack[-depth] if depth <= len(state.stack) else None for state in states
        }
        if len(set(lines.values())) == 1:
            continue
        odd = odd_ones(lines, lines)
        is_clear = len(set(lines.values())) == 2 or table.about is About.STALL
        if not is_clear or not is_minority(odd, table.everyone):
            return None
        at = next(line for rank, line in lines.items() if rank in odd)
        where = f" at {at.place}" if at else ""
        return Accusation(odd, "other-line", f"{name_ranks(odd)}{where}, the others at another line")
    return None
