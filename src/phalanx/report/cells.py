"""The calls of a trace as a compact raster, one row a rank and one column a slot, for a page to draw from.

Ranks of a job mostly call the same things in the same order. So what a call is goes into a short list of kinds, told from
the rank's own view (its n-th group, its peer as a distance); rows then repeat each other and compress to almost nothing.
"""

from __future__ import annotations

import base64
import zlib
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from phalanx.model.trace import CallState, Traces
from phalanx.report.lateness import Lateness, find_lateness
from phalanx.report.slots import Axis, batches, find_axis, labelled_groups, place

if TYPE_CHECKING:
    import polars

MOST_CELLS = 40_000_000
NOTHING, SCHEDULED, STARTED, COMPLETED, NOT_ENTERED = range(5)
_LATE_SHIFT = 3  # lateness stands above the state's three bits
_STATES = {CallState.SCHEDULED: SCHEDULED, CallState.STARTED: STARTED, CallState.COMPLETED: COMPLETED}
_KIND = ("local", "op", "shape", "dtype", "place", "p2p", "distance", "root_distance")


@dataclass(slots=True)
class Cells:
    """The raster and the lists that explain it."""

    ranks: list[int]
    width: int
    dropped: int  # slots at the start that did not fit
    axis: Axis
    late: Lateness
    kinds: list[tuple[Any, ...]] = field(default_factory=list)
    kind_low: bytearray = field(default_factory=bytearray)
    kind_high: bytearray = field(default_factory=bytearray)
    states: bytearray = field(default_factory=bytearray)
    groups_of_rank: list[list[int]] = field(default_factory=list)
    first_seq: list[list[int]] = field(default_factory=list)  # of each rank: local group, 0 or 1 for p2p, seq, …
    jumps: array[int] = field(default_factory=lambda: array("i"))  # row, column, seq minus the expected one

    def packed(self) -> dict[str, str]:
        """The planes as text: deflated, in base64."""
        planes = {"low": self.kind_low, "high": self.kind_high, "state": self.states, "jumps": self.jumps.tobytes()}
        return {name: base64.b64encode(zlib.compress(bytes(data), 6)).decode() for name, data in planes.items()}


def make_cells(traces: Traces, most: int = MOST_CELLS) -> Cells:
    """Lay all calls out; the oldest slots are left out where the raster would grow too large for a browser."""
    axis = find_axis(traces)
    ranks = sorted(traces.calls.get_column("rank").unique().to_list())
    width = min(axis.length, max(64, most // max(1, len(ranks))))
    cells = Cells(ranks, width, axis.length - width, axis, find_lateness(traces, axis))
    numbers: dict[tuple[Any, ...], int] = {}
    local = _local_groups(traces)
    for batch in batches(traces.calls):
        placed = place(batch, axis)
        _add_rows(cells, placed.join(local, on=["rank", "group"], how="left", maintain_order="left"), numbers)
    cells.kinds = list(numbers)
    by_rank = dict(local.group_by("rank", maintain_order=True).agg("group").iter_rows())
    cells.groups_of_rank = [by_rank.get(rank, []) for rank in ranks]
    rows = {rank: row for row, rank in enumerate(ranks)}
    for rank, slot in find_not_entered(traces, axis):
        _mark_not_entered(cells, rows[rank], slot - cells.dropped)
    return cells


def _local_groups(traces: Traces) -> polars.DataFrame:
    """Each rank's groups numbered in the order of their labels, with the group's first member."""
    import polars as pl

    used = traces.calls.lazy().select("rank", "group").unique().collect()
    named = labelled_groups(traces).select("group", "label", first=pl.col("members").list.first())
    ordered = used.join(named, on="group", how="left").sort("rank", "label", "group")
    return ordered.select("rank", "group", "first", local=pl.int_range(pl.len(), dtype=pl.Int64).over("rank"))


def _add_rows(cells: Cells, placed: polars.DataFrame, numbers: dict[tuple[Any, ...], int]) -> None:
    """Append the raster's rows of one batch of ranks."""
    import polars as pl

    late = placed.join(cells.late.levels, on=["rank", "anchor"], how="left", maintain_order="left")
    state = pl.col("state").cast(pl.Int64).replace_strict({int(k): v for k, v in _STATES.items()}, default=COMPLETED)
    level = pl.when(pl.col("state") == int(CallState.COMPLETED)).then(pl.col("level").fill_null(0)).otherwise(0)
    ranks = placed.get_column("rank").unique().sort()
    rows = pl.DataFrame({"rank": ranks, "row": pl.Series(range(len(ranks)), dtype=pl.Int64)})
    keyed = (
        late.filter(pl.col("slot") >= cells.dropped)
        .with_columns(
            distance=(pl.col("peer") - pl.col("rank")).cast(pl.Int64),
            root_distance=(pl.col("root") - pl.col("first")).cast(pl.Int64),
            cell=state + level * (1 << _LATE_SHIFT),
            column=pl.col("slot") - cells.dropped,
        )
        .with_columns(key=pl.struct(_KIND).hash())
        .join(rows, on="rank", how="left", maintain_order="left")
    )
    kinds = keyed.group_by("key", maintain_order=True).agg(pl.col(_KIND).first())
    ids = [numbers.setdefault(row[1:], len(numbers)) for row in kinds.iter_rows()]
    numbered = pl.DataFrame({"key": kinds.get_column("key"), "kind": pl.Series(ids, dtype=pl.Int64)})
    keyed = keyed.join(numbered, on="key", how="left", maintain_order="left")
    _add_sequences(cells, keyed, len(ranks))
    where = keyed.get_column("row") * cells.width + keyed.get_column("column")
    size = len(ranks) * cells.width
    kind = keyed.get_column("kind") + 1  # 0 is for nothing
    cells.kind_low += _plane(size, where, kind % 256)
    cells.kind_high += _plane(size, where, kind // 256)
    cells.states += _plane(size, where, keyed.get_column("cell"))


def _add_sequences(cells: Cells, keyed: polars.DataFrame, rows: int) -> None:
    """The numbers of the calls: the first of each group, and where the next is not the one after the last."""
    import polars as pl

    before = len(cells.states) // max(1, cells.width)
    own = ["row", "local", "p2p"]
    firsts: list[list[int]] = [[] for _ in range(rows)]
    for row, local, p2p, seq in keyed.group_by(own, maintain_order=True).agg(pl.col("seq").first()).iter_rows():
        firsts[row] += [local, int(p2p), seq]
    cells.first_seq += firsts
    stray = keyed.with_columns(stray=pl.col("seq").diff().over(own) - 1).filter(pl.col("stray") != 0)
    cells.jumps.extend(
        number
        for row, column, by in stray.select("row", "column", "stray").iter_rows()
        for number in (row + before, column, max(-(2**31), min(by, 2**31 - 1)))
    )


def _plane(size: int, where: polars.Series, values: polars.Series) -> bytes:
    import polars as pl

    empty = pl.zeros(size, dtype=pl.UInt8, eager=True)
    return bytes(empty.scatter(where, values.cast(pl.UInt8)))


def _mark_not_entered(cells: Cells, row: int, column: int) -> None:
    """Mark the first free cell from where the others wait on; the rank may stand elsewhere at that place."""
    for at in range(max(0, column), cells.width):
        if cells.states[row * cells.width + at] == NOTHING:
            cells.states[row * cells.width + at] = NOT_ENTERED
            return


def find_not_entered(traces: Traces, axis: Axis) -> list[tuple[int, int]]:
    """Members of a group that did not come to the first call that others of it still wait in, and that call's slot."""
    import polars as pl

    lazy = traces.calls.lazy().filter(~pl.col("p2p"))
    waiting = (
        lazy.filter(pl.col("state") != int(CallState.COMPLETED)).group_by("group").agg(pl.col("seq").min()).collect()
    )
    if waiting.is_empty():
        return []
    reached = lazy.group_by("group", "rank").agg(last=pl.col("seq").max()).collect()
    members = traces.groups.select("group", rank=pl.col("members")).explode("rank")
    seen = pl.DataFrame({"rank": sorted(traces.calls.get_column("rank").unique().to_list())}, schema={"rank": pl.Int32})
    absent = (
        waiting.join(members, on="group")
        .join(seen, on="rank", how="semi")
        .join(reached, on=["group", "rank"], how="left")
        .filter(pl.col("last").is_null() | (pl.col("last") < pl.col("seq")))
    )
    if absent.is_empty():
        return []
    wanted = waiting.join(absent.select("group").unique(), on="group", how="semi")
    slots: dict[int, int] = {}
    for batch in batches(traces.calls):
        here = place(batch, axis).filter(~pl.col("p2p")).join(wanted, on=["group", "seq"], how="semi")
        for group, slot in here.group_by("group").agg(pl.col("slot").max()).iter_rows():
            slots[group] = max(slot, slots.get(group, 0))
    return sorted((rank, slots[group]) for group, rank in absent.select("group", "rank").iter_rows() if group in slots)
