"""Gives every call of a trace a place on a common axis without trusting the ranks' clocks.

The calls of the widest groups (mostly those of all ranks) are anchors: the same sequence number stands at the same place
for every rank. Between two anchors a rank's calls take one slot each, in its own order. So calls that belong together
stand at the same place or close to it, and a rank that stopped early ends early.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from phalanx.model.trace import Traces

if TYPE_CHECKING:
    import polars

_BATCH_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class Axis:
    """The axis: which groups anchor it, and where each anchor stands."""

    label: str  # description of the anchoring groups; empty where nothing anchors and ends are aligned instead
    groups: tuple[int, ...]
    starts: polars.DataFrame  # anchor, start (of its segment), end
    length: int
    longest: int = field(default=0)  # the most calls of one rank, for the case without anchors


def batches(calls: polars.DataFrame) -> Iterator[polars.DataFrame]:
    """The calls in pieces of whole ranks, each in the ranks' own order: twenty million rows at once would not fit."""
    import polars as pl

    if not calls.get_column("rank").is_sorted():
        calls = calls.sort("rank", "order")
    runs = calls.get_column("rank").rle().struct.field("len").to_list()
    start, rows = 0, 0
    for run in runs:
        if rows and rows + run > _BATCH_ROWS:
            yield calls.slice(start, rows).sort(pl.col("rank"), pl.col("order"))
            start, rows = start + rows, 0
        rows += run
    if rows:
        yield calls.slice(start, rows).sort(pl.col("rank"), pl.col("order"))


def labelled_groups(traces: Traces) -> polars.DataFrame:
    """The groups with what they are called on the page: their description, or else their name."""
    import polars as pl

    described = pl.col("description").fill_null("").str.len_chars() > 0
    label = pl.when(described).then(pl.col("description")).otherwise("group " + pl.col("name").fill_null("?"))
    return traces.groups.with_columns(label=label, size=pl.col("members").list.len().cast(pl.Int64))


def find_axis(traces: Traces) -> Axis:
    """Choose the anchors, and lay the axis out so that the rank with most calls between two anchors fits."""
    import polars as pl

    label, groups = _anchors(traces)
    parts: list[polars.DataFrame] = []
    longest = 0
    for batch in batches(traces.calls):
        longest = max(longest, batch.group_by("rank").len().get_column("len").max())  # type: ignore[type-var, assignment]
        if groups:
            parts.append(_segments(batch, groups).group_by("anchor").agg(width=pl.col("inside").max() + 1))
    if not groups:
        return Axis("", (), pl.DataFrame({"anchor": [], "start": [], "end": []}), longest, longest)
    widths = pl.concat(parts).group_by("anchor").agg(pl.col("width").max()).sort("anchor")
    starts = widths.select("anchor", start=pl.col("width").cum_sum() - pl.col("width"), end=pl.col("width").cum_sum())
    return Axis(label, groups, starts, int(widths.get_column("width").sum()), longest)


def place(batch: polars.DataFrame, axis: Axis) -> polars.DataFrame:
    """The batch with `slot`, its place on the axis, and `anchor`, the anchor that its segment begins with."""
    import polars as pl

    if not axis.groups:
        slot = axis.longest - pl.len().over("rank") + pl.int_range(pl.len()).over("rank")
        return batch.with_columns(slot=slot.cast(pl.Int64), anchor=pl.lit(None, dtype=pl.Int64))
    placed = _segments(batch, axis.groups).join(axis.starts, on="anchor", how="left", maintain_order="left")
    # What a rank did before its first anchor ends where that anchor begins: its ring dropped the start, not the end.
    early = pl.col("end") - pl.col("run") + pl.col("inside")
    slot = pl.when(pl.col("leading")).then(early).otherwise(pl.col("start") + pl.col("inside"))
    return placed.with_columns(slot=slot.cast(pl.Int64)).drop("start", "end", "inside", "run", "leading")


def _anchors(traces: Traces) -> tuple[str, tuple[int, ...]]:
    """The groups that anchor the axis: those of one description that reach most ranks; the largest among equals."""
    import polars as pl

    used = traces.calls.lazy().filter(~pl.col("p2p")).select("rank", "group").unique().collect()
    named = used.join(labelled_groups(traces).select("group", "label", "size"), on="group", how="inner")
    if named.is_empty():
        return "", ()
    # A rank in two groups of one description would be at two places at once.
    once = named.group_by("label", "rank").len().group_by("label").agg(once=pl.col("len").max() == 1)
    reach = named.group_by("label").agg(ranks=pl.col("rank").n_unique(), size=pl.col("size").max())
    best = reach.join(once, on="label").filter("once").sort(["ranks", "size", "label"], descending=[True, True, False])
    if best.is_empty():
        return "", ()
    label = str(best.item(0, "label"))
    return label, tuple(named.filter(pl.col("label") == label).get_column("group").unique().sort().to_list())


def _segments(batch: polars.DataFrame, groups: tuple[int, ...]) -> polars.DataFrame:
    """Each call's anchor (the last one at or before it), its place in that segment, and how long the segment is."""
    import polars as pl

    is_anchor = pl.col("group").is_in(list(groups)) & ~pl.col("p2p")
    own = pl.when(is_anchor).then(pl.col("seq"))
    marked = batch.with_columns(anchor=own.forward_fill().over("rank"), following=own.backward_fill().over("rank"))
    marked = marked.with_columns(
        leading=pl.col("anchor").is_null(), anchor=pl.coalesce("anchor", pl.col("following") - 1)
    )
    marked = marked.with_columns(anchor=pl.col("anchor").fill_null(-1)).drop("following")
    # Calls of one rank that share an anchor follow each other, so a run's first row is where the pair changes.
    changed = (pl.col("rank") != pl.col("rank").shift(1)) | (pl.col("anchor") != pl.col("anchor").shift(1)) | pl.col("leading").ne(pl.col("leading").shift(1))  # fmt: skip
    numbered = marked.with_columns(run_id=changed.fill_null(value=True).cum_sum())
    inside = pl.int_range(pl.len(), dtype=pl.Int64).over("run_id")
    return numbered.with_columns(inside=inside, run=pl.len().over("run_id").cast(pl.Int64)).drop("run_id")
