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


def find_lateness(traces: Traces, axis: Axis) -> Lateness:
    """Measure it on the anchoring groups; nothing where the trace has no times or too few calls."""
    import polars as pl

    nothing = pl.DataFrame(schema={"rank": pl.Int32, "anchor": pl.Int64, "level": pl.Int64})
    if not axis.groups:
        return Lateness(nothing)
    wanted = pl.col("group").is_in(list(axis.groups)) & ~pl.col("p2p") & (pl.col("state") == int(CallState.COMPLETED))
    timed = pl.col("created_ns").is_not_null() & pl.col("completed_ns").is_not_null()
    columns = ["rank", "group", "seq", "created_ns", "completed_ns"]
    calls = traces.calls.lazy().filter(wanted & timed).select(columns).collect()
    if calls.get_column("seq").n_unique() < _LEAST_CALLS:
        return Lateness(nothing)
    together = ["group", "seq"]
    # Median, not mean: PyTorch's watchdog sees ends only at its rounds, a tenth of a second apart.
    ahead = (pl.col("completed_ns") - pl.col("completed_ns").median().over(together)).median().over("rank")
    made = calls.with_columns(made=pl.col("created_ns") - ahead)
    made = made.with_columns(late=pl.col("made") - pl.col("made").median().over(together))
    moments = made.group_by("group", "seq").agg(pl.col("made").median()).sort("group", "seq")
    period = moments.select(pl.col("made").diff().over("group").median()).item()
    if not period or period <= 0:
        return Lateness(nothing)
    level = pl.lit(0)
    for number, share in enumerate(LEVELS, 1):
        level = pl.when(pl.col("late") > max(_LEAST_NS, share * period)).then(number).otherwise(level)
    levels = made.with_columns(level=level.cast(pl.Int64)).filter(pl.col("level") > 0)
    usual = made.group_by("rank").agg(pl.col("late").median() / 1e6)
    return Lateness(
        levels.select("rank", "level", anchor=pl.col("seq")).unique(["rank", "anchor"], keep="first", maintain_order=True),
        {rank: round(late, 3) for rank, late in usual.iter_rows()},
        period / 1e6,
    )
