"""Finds the rank that is late time after time, in a job that otherwise goes on.

All members end a collective together, so no clocks need to be compared: the time from a rank's own call to its own end is how
long it waited, and who waits less than the others by some amount came later by that amount.
"""

from __future__ import annotations

import polars as pl

from phalanx.diagnosis.collective_analysis.observation import Break, Observation, observation
from phalanx.diagnosis.collective_analysis.trace_state import TraceState
from phalanx.model.trace import Traces

_MOST_ROWS = 3_000_000
_LEAST_TIMES = 5
# Ends are found by a watchdog that looks every 100 ms, each rank's at its own phase: less than one and a half of that is noise.
_LEAST_NS = 150_000_000
_LEAST_ON_DEVICE_NS = 1_000_000  # NCCL's own profiler times calls on the GPU
_LEAST_SHARE = 0.25  # of a rank's calls at which it must be the last: one late call a run is no straggler
_ALWAYS = 0.6  # of the calls at which anybody is late, those at which the straggler is the last
_OVER_NOISE = 4


def find_stragglers(traces: Traces, state: TraceState) -> list[Observation]:
    """At most one: a rank that is the last in each of its groups. Who is late because it waited elsewhere is last in some only."""
    late = _lateness(traces)
    if late.is_empty():
        return []
    noise = late["late"].abs().median()
    timed_on_device = all(file.form == "nccl inspector" for file in traces.files)
    least = _LEAST_ON_DEVICE_NS if timed_on_device else _LEAST_NS
    bound = max(float(least), _OVER_NOISE * float(noise if isinstance(noise, int | float) else 0))
    last = (
        late.sort("late", descending=True)
        .group_by("group", "seq", maintain_order=True)
        .agg(pl.col("rank").first(), pl.col("late").first())
        .filter(pl.col("late") > bound)
    )
    if len(last) < _LEAST_TIMES:
        return []
    found = []
    for rank, times in last["rank"].value_counts().sort("count", "rank", descending=[True, False]).head(8).iter_rows():
        groups = late.filter(pl.col("rank") == rank)["group"].unique().implode()
        here = last.filter(pl.col("group").is_in(groups))
        every = late.filter((pl.col("rank") == rank) & (pl.col("late") > bound))
        by_group = (
            here.group_by("group")
            .agg(share=(pl.col("rank") == rank).mean(), n=pl.len())
            .filter(pl.col("n") >= _LEAST_TIMES)
        )
        count = len(late.filter(pl.col("rank") == rank))
        if (
            times >= max(_LEAST_TIMES, _LEAST_SHARE * count)
            and len(by_group)
            and bool((by_group["share"] >= _ALWAYS).all())
        ):
            found.append((times, rank, every))
    return [_observation(traces, state, *max(found, key=lambda one: (one[0], -one[1])), late)] if found else []


def _lateness(traces: Traces) -> pl.DataFrame:
    """By call and rank, how much later than its peers the rank came, in nanoseconds of its own clock."""
    timed = traces.calls.lazy().filter(
        ~pl.col("p2p") & pl.col("completed_ns").is_not_null() & pl.col("created_ns").is_not_null()
    )
    every = max(1, len(traces.calls) // _MOST_ROWS)
    if every > 1:  # a sample of the calls, but always all ranks of a call
        timed = timed.filter((pl.col("seq").hash(7) % every) == 0)
    waited = timed.select("group", "seq", "rank", waited=pl.col("completed_ns") - pl.col("created_ns")).collect()
    column = pl.col("waited")
    middle = waited.group_by("group", "seq").agg(middle=column.median(), total=column.sum(), members=pl.len())
    other = pl.when(pl.col("members") == 2).then(pl.col("total") - column).otherwise(pl.col("middle"))
    return (
        waited.join(middle.filter(pl.col("members") > 1), on=["group", "seq"])
        .with_columns(late=other - column)
        .select("group", "seq", "rank", "late")
    )


def _observation(
    traces: Traces, state: TraceState, times: int, rank: int, every: pl.DataFrame, late: pl.DataFrame
) -> Observation:
    amount = every["late"].median()
    count = len(late.filter(pl.col("rank") == rank))
    about = _time(float(amount if isinstance(amount, int | float) else 0))
    others = tuple(sorted(state.present - {rank}))
    return observation(Break.STRAGGLER, (rank,), others, None, rank, late=about, times=times, count=count)


def _time(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e9:.1f} s" if nanoseconds >= 1e9 else f"{nanoseconds / 1e6:.0f} ms"
