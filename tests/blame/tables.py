"""Short ways to write a rank table in a test."""

from __future__ import annotations

from typing import Any

from phalanx.blame import About, Coverage, Doing, Ending, GroupCall, RankState, RankTable, Words


def waiting(rank: int, seq: int | None = None, **more: Any) -> RankState:
    """A rank that says that it waited in a call."""
    call = GroupCall(
        more.pop("group", "0"), seq, more.pop("op", ""), more.pop("sizes", ""), peer=more.pop("peer", None)
    )
    calls = (call,) if seq is not None or call.op or call.sizes or call.peer is not None else ()
    return RankState(rank, Doing.WAITING, calls, words=Words.VICTIM, **more)


def dead(rank: int, code: int, *, own: bool = True, at: float | None = None, **more: Any) -> RankState:
    """A rank that ended."""
    return RankState(rank, Doing.GONE if code else Doing.LEFT, ending=Ending(code, own, at), **more)


def table(
    *states: RankState,
    about: About = About.PEERS,
    size: int | None = None,
    covered: bool = False,
    shown_by: set[int] | None = None,
    **more: Any,
) -> RankTable:
    """A table in which the waiting ranks show the failure, unless `shown_by` says who."""
    everyone = frozenset(range(size)) if size is not None else frozenset(state.rank for state in states)
    shown = {state.rank for state in states if state.doing is Doing.WAITING} if shown_by is None else shown_by
    coverage = Coverage(everyone, "a file for each rank") if covered else Coverage()
    return RankTable({state.rank: state for state in states}, about, frozenset(shown), everyone, coverage, **more)
