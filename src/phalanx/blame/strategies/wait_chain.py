"""Ranks wait for one another through several groups; where the chain of waiting ends, a rank waits for nobody."""

from __future__ import annotations

from phalanx.blame.quorum import is_minority
from phalanx.blame.table import About, Accusation, Doing, RankTable, Words
from phalanx.model.ranks import name_ranks

ORDER = 60
ABOUT = (About.PEERS, About.STALL)


def accuse(table: RankTable) -> Accusation | None:
    """Those that others wait for and that wait for nobody. Who is in a call that all have entered is held up on the way, by
    the network or a device. In logs, only where the members of groups are known: else `behind` compares their numbers."""
    if table.about is About.PEERS and not table.members:
        return None
    waits_for = waiting_for(table)
    roots = frozenset().union(*waits_for.values()) - waits_for.keys()
    accused = frozenset(rank for rank in roots if not _is_held_up(table, rank))
    if not is_minority(accused, table.everyone, directed=True):
        return None
    if table.about is About.PEERS and (not accused <= table.coverage.ranks or accused & table.shown_by):
        return None  # an excerpt, or lines that are torn: who shows the failure waits, too
    return Accusation(accused, "wait-chain", f"{name_ranks(accused)} never entered what others wait in")


def waiting_for(table: RankTable) -> dict[int, frozenset[int]]:
    """By rank, whom it waits for: members of a group that have not entered its call, the other side of its send or receive."""
    found: dict[int, frozenset[int]] = {}
    for group, calls in table.groups.items():
        for rank, call in calls.items():
            absent: frozenset[int] = frozenset()
            if call.peer is not None and any(
                one.seq is not None or one.last_enqueued for one in table.state(rank).calls
            ):
                absent = frozenset({call.peer})
            elif group and call.seq is not None and not call.is_point_to_point:
                entered = ((other, its.last_enqueued) for other, its in calls.items())
                absent = frozenset(other for other, number in entered if number is not None and number < call.seq)
                absent |= table.members.get(group, frozenset()) - calls.keys()
            if absent:
                found[rank] = found.get(rank, frozenset()) | absent
    return found


def _is_held_up(table: RankTable, rank: int) -> bool:
    """Whether it waits in a call itself. A log tells of that, whatever became of the process then."""
    state = table.state(rank)
    is_there = table.about is About.PEERS or state.doing in (Doing.WAITING, Doing.SEEN, Doing.UNSEEN)
    waits = any(call.seq is not None for call in state.calls)
    return (is_there and waits) or (table.about is About.PEERS and state.words is Words.VICTIM)
