"""Fills the rank table from stacks and flight recorders of one moment, for the engine that says who is to blame."""

from __future__ import annotations

from collections.abc import Mapping

from phalanx.blame import About, Ending, GroupCall, Line, RankState, RankTable
from phalanx.blame import Doing as Does
from phalanx.blame.table import CONNECTING
from phalanx.run.watch.partners import is_point_to_point
from phalanx.run.watch.rank_position import Doing, RankPosition
from phalanx.run.watch.recorder import GroupState
from phalanx.sources.rank_conditions import singles_out

_DOES = {
    Doing.COLLECTIVE: Does.WAITING,
    Doing.CONNECT: Does.WAITING,
    Doing.DATA: Does.DATA,
    Doing.STOPPED: Does.STOPPED,
    Doing.ELSEWHERE: Does.RUNNING,
    Doing.UNKNOWN: Does.SEEN,
}


def table_of(
    positions: Mapping[int, RankPosition], recorders: Mapping[int, Mapping[str, GroupState]], size: int
) -> RankTable:
    """One row for each rank that was seen or left a recorder."""
    ranks = positions.keys() | recorders.keys()
    states = {rank: _state(rank, positions.get(rank), recorders.get(rank, {})) for rank in ranks}
    waiting = frozenset(rank for rank, state in states.items() if state.doing is Does.WAITING)
    everyone = frozenset(range(size)) | ranks
    return RankTable(states, About.STALL, shown_by=waiting, everyone=everyone)


def _state(rank: int, one: RankPosition | None, groups: Mapping[str, GroupState]) -> RankState:
    calls = [_call(name, state) for name, state in groups.items()]
    if one is None:
        return RankState(rank, Does.UNSEEN, tuple(calls))
    if one.doing is Doing.ENDED:
        ending = Ending(one.code or 0, is_own=True)
        return RankState(rank, Does.LEFT if one.code == 0 else Does.GONE, ending=ending)
    if one.doing is Doing.CONNECT:
        calls.append(GroupCall(CONNECTING))
    elif is_point_to_point(one.call):
        partner = one.partner
        facts = {} if partner is None else {"way": "to" if partner.sends else "from", "tag": str(partner.tag)}
        calls.append(GroupCall(op=one.call, peer=partner.rank if partner is not None else None, facts=facts))
    stack = (Line(one.frame.file, one.frame.line, one.call),) if one.frame is not None else ()
    # who stands under `if rank != 1` is where most are meant to be
    condition = "" if one.condition.startswith("if ") and not singles_out(one.condition) else one.condition
    return RankState(rank, _DOES[one.doing], tuple(calls), stack, condition)


def _call(name: str, state: GroupState) -> GroupCall:
    """How far a rank is in a group; the number is that of the call it waits in."""
    waits = state.waits_in
    if waits is None:
        return GroupCall(name, last_enqueued=state.entered.seq, is_completed=True)
    return GroupCall(name, waits.seq, waits.op, waits.shape, last_enqueued=state.entered.seq)
