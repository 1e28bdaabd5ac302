"""Which ranks come late to the calls that anchor the axis, clocks aligned by what all members end together.

A collective ends for all of its members at the same moment. The usual difference between a rank's clock and the others' at
those moments is the difference of the clocks; what is left, when calls are made, is lateness.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from phalanx.model.trace import CallState, Traces
from phalanx.report.slots import Axis

if TYPE_CHECKING:
    import polars

# A segment is late at a level from this share of the usual time between two anchors on.
LEVELS = (0.05, 0.15, 0.4)
_LEAST_NS = 2_000_000  # below this it is the jitter of any machine
_LEAST_CALLS = 5


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late each rank came: by anchor as a level from 0 to 3, and over all anchors in milliseconds."""

    levels: polars.DataFrame  # rank, anchor, level
    milliseconds: dict[int, float] = field(default_factory=dict)
    period_ms: float | None = None


def clock_offsets(traces: Traces, axis: Axis) -> dict[int, int]:
    """By how many nanoseconds each rank's clock is ahead of the others', as far as common calls tell it."""
    if not axis.groups:
        return {}
    ahead = _with_offset(_timed_anchors(traces, axis)).select("rank", "ahead").unique("rank")
    return {rank: round(by) for rank, by in ahead.iter_rows()}


def _timed_anchors(traces: Traces, axis: Axis) -> polars.DataFrame:
    """The ended calls of the anchoring groups that have times."""
    import polars as pl

    wanted = pl.col("group").is_in(list(axis.groups)) & ~pl.col("p2p") & (pl.col("state") == int(CallState.COMPLETED))
    timed = pl.col("created_ns").is_not_null() & pl.col("completed_ns").is_not_null()
    columns = ["rank", "group", "seq", "created_ns", "completed_ns"]
    return traces.calls.lazy().filter(wanted & timed).select(columns).collect()


def _with_offset(calls: polars.DataFrame) -> polars.DataFrame:
    """The calls with `ahead`, by how much their rank's clock is ahead of the usual one of their group."""
    import polars as pl

    # Median, not mean: PyTorch's watchdog sees ends only at its rounds, a tenth of a second apart. Two steps, since a window
    # inside a window would be taken within the outer one's rows.
    ended = pl.col("completed_ns")
    apart = calls.with_columns(apart=ended - ended.median().over("group", "seq"))
    return apart.with_columns(ahead=pl.col("apart").median().over("rank")).drop("apart")


def find_lateness(traces: Traces, axis: Axis) -> Lateness:
    """Measure it on the anchoring groups; nothing where the trace has no times or too few calls."""
    import polars as pl

    nothing = pl.DataFrame(schema={"rank": pl.Int32, "anchor": pl.Int64, "level": pl.Int64})
    if not axis.groups:
        return Lateness(nothing)
    calls = _timed_anchors(traces, axis)
    if calls.get_column("seq").n_unique() < _LEAST_CALLS:
        return Lateness(nothing)
    together = ["group", "seq"]
    made = _with_offset(calls).with_columns(made=pl.col("created_ns") - pl.col("ahead"))
    made = made.with_columns(late=pl.col("made") - pl.col("made").median().over(together))
    moments = made.group_by("group", "seq").agg(pl.col("made").median()).sort("group", "seq")
    period = moments.select(pl.col("made").diff().over("group").median()).item()
    if not period or period <= 0:
        return Lateness(nothing)
    # Clocks are never aligned perfectly: what most ranks show is noise.
    noise = max(_LEAST_NS, 4 * made.select(pl.col("late").abs().median()).item())
    level = pl.lit(0)
    for number, share in enumerate(LEVELS, 1):
        level = pl.when(pl.col("late") > max(noise, share * period)).then(number).otherwise(level)
    levels = made.with_columns(level=level.cast(pl.Int64)).filter(pl.col("level") > 0)
    usual = made.group_by("rank").agg(pl.col("late").median() / 1e6)
    return Lateness(
        levels.select("rank", "level", anchor=pl.col("seq")).unique(
            ["rank", "anchor"], keep="first", maintain_order=True
        ),
        {rank: round(late, 3) for rank, late in usual.iter_rows()},
        period / 1e6,
    )
