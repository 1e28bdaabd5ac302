"""The axis: calls that belong together stand together, whatever the clocks say."""

from __future__ import annotations

import polars as pl

from phalanx.model.trace import Traces
from phalanx.report.lateness import find_lateness
from phalanx.report.slots import batches, find_axis, place

from ..made_traces import made


def placed(traces: Traces) -> pl.DataFrame:
    axis = find_axis(traces)
    return pl.concat([place(batch, axis) for batch in batches(traces.calls)])


def test_calls_of_the_whole_world_stand_at_one_place() -> None:
    traces = made("none")
    axis = find_axis(traces)
    assert axis.label == "default_pg"
    world = placed(traces).filter(pl.col("group").is_in(list(axis.groups)))
    assert world.group_by("seq").agg(pl.col("slot").n_unique()).get_column("slot").max() == 1
    assert world.get_column("seq").n_unique() >= 2


def test_a_rank_has_one_call_a_slot_in_its_own_order() -> None:
    calls = placed(made("host-stall"))
    for own in calls.partition_by("rank", as_dict=True).values():
        slots = own.sort("order").get_column("slot").to_list()
        assert slots == sorted(set(slots))


def test_tensor_parallel_calls_of_a_group_line_up() -> None:
    calls = placed(made("none"))
    tensor = calls.join(made("none").groups, on="group").filter(pl.col("description") == "TENSOR_MODEL_PARALLEL_GROUP")
    spread = tensor.group_by("group", "seq").agg(pl.col("slot").n_unique())
    assert spread.get_column("slot").max() == 1


def test_clocks_do_not_move_a_call() -> None:
    traces = made("host-stall")
    shift = pl.col("rank").cast(pl.Int64) * 3_600_000_000_000
    columns = [(pl.col(name) + shift).alias(name) for name in ("created_ns", "started_ns", "completed_ns")]
    moved = Traces(traces.calls.with_columns(columns), traces.groups, traces.status, traces.files, traces.world_size)
    assert placed(moved).get_column("slot").to_list() == placed(traces).get_column("slot").to_list()


def test_without_a_common_group_the_ends_are_aligned() -> None:
    traces = made("none")
    p2p = Traces(traces.calls.with_columns(p2p=pl.lit(True)), traces.groups, traces.status, traces.files, 16)
    assert find_axis(p2p).label == ""
    assert placed(p2p).group_by("rank").agg(pl.col("slot").max()).get_column("slot").n_unique() == 1


def test_the_straggler_is_late_and_nobody_else() -> None:
    traces = made("straggler", entries=2000)
    late = find_lateness(traces, find_axis(traces))
    assert set(late.levels.get_column("rank").to_list()) == {12}
    assert 200 < late.milliseconds[12] < 300


def test_skewed_clocks_make_nobody_late() -> None:
    traces = made("none", entries=2000)
    shift = pl.col("rank").cast(pl.Int64) * 60_000_000_000
    columns = [(pl.col(name) + shift).alias(name) for name in ("created_ns", "started_ns", "completed_ns")]
    moved = Traces(traces.calls.with_columns(columns), traces.groups, traces.status, traces.files, traces.world_size)
    late = find_lateness(moved, find_axis(moved))
    assert late.levels.is_empty()
    assert max(abs(by) for by in late.milliseconds.values()) < 100, (
        "the clocks are aligned to within the watchdog's round"
    )
