"""Whether the traces show a job that stands still. Of one that runs, each rank's trace is of another moment, and the ranks are never level.

A job that hangs does not move while its ranks are asked, so it does not matter when each of them was. Two things betray a job
that did move. A collective that needs every member has ended in a member, and another one's trace does not even have it: that
rank entered it after its trace was written. Or every outstanding call was made a moment before the file was written, by the
clock of one and the same host. Both only ever excuse: nobody is accused for them.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from phalanx.diagnosis.collective_analysis.trace_state import TraceState
from phalanx.diagnosis.collective_analysis.waits import ENDS_ALONE
from phalanx.model.ranks import name_ranks
from phalanx.model.trace import CallState, Traces

_DONE = int(CallState.COMPLETED)
_A_MOMENT = (
    2_000_000_000  # nanoseconds: steps of running jobs wait for one another for less, and hangs are looked at later
)
_FORM = "flight recorder"  # the other forms do not number calls alike on all ranks


def why_moving(traces: Traces, state: TraceState) -> str | None:
    """Why a stall cannot be concluded from these traces, in words; None where they may show one."""
    if not state.pending:
        return None
    older = _went_on(traces, state)
    if older:
        whose = "trace is" if len(older) == 1 else "traces are"
        return f"stalls: the {whose} of {name_ranks(older)} older than those of other ranks, which completed calls with it since"
    if _is_fresh(traces, state):
        return "stalls: the traces were written within two seconds of the calls that wait, as in a job that runs"
    return None


def _went_on(traces: Traces, state: TraceState) -> list[int]:
    """Ranks whose trace lacks a collective that a peer completed, and that nobody can complete without them."""
    whole = {file.rank for file in traces.files if file.form.startswith(_FORM) and not file.truncated}
    ended = (
        traces.calls.lazy()
        .filter(~pl.col("p2p") & (pl.col("state") == _DONE) & ~pl.col("op").cast(pl.String).is_in(sorted(ENDS_ALONE)))
        .group_by("group")
        .agg(pl.col("seq").max())
        .drop_nulls()
        .collect()
    )
    found = set()
    for group, seq in ended.iter_rows():
        for rank, position in state.positions.get(group, {}).items():
            if rank in whole and 0 < position.entered < seq:
                found.add(rank)
    return sorted(found)


def _is_fresh(traces: Traces, state: TraceState) -> bool:
    """Whether each rank's outstanding calls were a moment old when its file was written."""
    written = {file.rank: file.written_ns for file in traces.files}
    made = _first_outstanding(traces, state.pending)
    if not made:
        return False
    ages = [(written.get(rank) or 0) - first for rank, first in made.items()]
    return len(made) == len(state.pending) and all(0 <= age < _A_MOMENT for age in ages)


def _first_outstanding(traces: Traces, ranks: Iterable[int]) -> dict[int, int]:
    """By rank, when the oldest of its outstanding calls was made."""
    rows = (
        traces.calls.lazy()
        .filter(pl.col("rank").is_in(list(ranks)) & (pl.col("state") != _DONE))
        .group_by("rank")
        .agg(pl.col("created_ns").min())
        .drop_nulls()
        .collect()
    )
    return dict(rows.iter_rows())
