"""The export holds to the trace-event format: what its documentation asks of processes, threads, slices, marks and arrows."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl

from phalanx.model.trace import Traces
from phalanx.report.perfetto import write_perfetto

from ..made_traces import made
from .test_formation import report_on


def exported(traces: Traces, folder: Path, culprits: tuple[int, ...] = (12,)) -> dict[str, Any]:
    write_perfetto(traces, folder / "job.json", report_on(culprits))
    found = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_a_process_a_rank_and_a_thread_a_group(tmp_path: Path) -> None:
    traces = made("host-stall")
    events = exported(traces, tmp_path)["traceEvents"]
    names = {one["pid"]: one["args"]["name"] for one in events if one["ph"] == "M" and one["name"] == "process_name"}
    order = {
        one["pid"]: one["args"]["sort_index"]
        for one in events
        if one["ph"] == "M" and one["name"] == "process_sort_index"
    }
    assert (names[103], names[112]) == ("rank 03", "rank 12 ▶ broke formation")
    assert (
        sorted(order, key=lambda pid: order[pid]) == sorted(names, key=lambda pid: names[pid]) == list(range(100, 116))
    )
    threads = [(one["pid"], one["tid"]) for one in events if one["ph"] == "M" and one["name"] == "thread_name"]
    used = traces.calls.select("rank", "group").unique()
    assert len(threads) == len(set(threads)) == len(used)
    assert len({tid for _, tid in threads}) == len(threads), "a thread's number is unique in the trace"


def test_a_slice_a_call_and_slices_of_a_thread_only_nest(tmp_path: Path) -> None:
    traces = made("host-stall")
    events = exported(traces, tmp_path)["traceEvents"]
    slices = [one for one in events if one["ph"] == "X"]
    assert len(slices) == len(traces.calls)
    assert all(one["ts"] >= 0 and one["dur"] >= 0 for one in slices)
    by_thread = defaultdict(list)
    for one in slices:
        by_thread[one["tid"]].append((one["ts"], one["ts"] + one["dur"]))
    for spans in by_thread.values():
        ends: list[float] = []
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while ends and ends[-1] <= begin + 0.002:
                ends.pop()
            assert not ends or end <= ends[-1] + 0.01, "it would overlap the slice around it"
            ends.append(end)
    waiting = [one for one in slices if one["name"].endswith("(not ended)")]
    assert len(waiting) == len(traces.calls.filter(pl.col("state") < 2))


def test_marks_and_arrows_lie_on_slices(tmp_path: Path) -> None:
    events = exported(made("host-stall"), tmp_path)["traceEvents"]
    marks = [one for one in events if one["ph"] == "i"]
    assert [(one["pid"], one["s"], one["name"]) for one in marks] == [(112, "p", "A rank did not come")]
    starts, ends = ({one["id"]: one for one in events if one["ph"] == phase} for phase in "sf")
    assert starts.keys() == ends.keys()
    assert len(starts) == 15
    slices = [one for one in events if one["ph"] == "X"]
    for number in starts:
        assert starts[number]["ts"] <= ends[number]["ts"]
        for one in (starts[number], ends[number]):
            inside = [
                s for s in slices if s["tid"] == one["tid"] and s["ts"] - 0.01 <= one["ts"] <= s["ts"] + s["dur"] + 0.01
            ]
            assert one is starts[number] or inside


def test_clocks_that_differ_by_hours_are_aligned(tmp_path: Path) -> None:
    traces = made("none", entries=2000)
    shift = pl.col("rank").cast(pl.Int64) * 3_600_000_000_000
    columns = [(pl.col(name) + shift).alias(name) for name in ("created_ns", "started_ns", "completed_ns")]
    moved = Traces(traces.calls.with_columns(columns), traces.groups, traces.status, traces.files, traces.world_size)
    slices = [one for one in exported(moved, tmp_path)["traceEvents"] if one["ph"] == "X"]
    ends = defaultdict(list)
    for one in slices:
        if one["args"]["at"].endswith("reduce_max_stat_across"):
            ends[one["args"]["seq"]].append(one["ts"] + one["dur"])
    assert all(max(moments) - min(moments) < 250_000 for moments in ends.values() if len(moments) == 16)


def test_without_times_slots_stand_for_them(tmp_path: Path) -> None:
    traces = made("none")
    nulls = [pl.lit(None, dtype=pl.Int64).alias(name) for name in ("created_ns", "started_ns", "completed_ns")]
    bare = Traces(traces.calls.with_columns(nulls), traces.groups, traces.status, traces.files, 16)
    found = exported(bare, tmp_path, ())
    assert "holds no times" in found["otherData"]["time"]
    assert len({one["ts"] for one in found["traceEvents"] if one["ph"] == "X"}) > 50


def test_large_jobs_keep_the_newest_calls_and_may_be_compressed(tmp_path: Path) -> None:
    kept = write_perfetto(made("none"), tmp_path / "job.json.gz", None, most=16 * 60)
    assert kept == 60
    with gzip.open(tmp_path / "job.json.gz", "rt", encoding="utf-8") as file:
        slices = [one for one in json.load(file)["traceEvents"] if one["ph"] == "X"]
    assert len(slices) == 16 * 60
    newest = made("none").calls.filter(pl.col("rank") == 3).sort("order").get_column("seq").to_list()[-60:]
    assert sorted(one["args"]["seq"] for one in slices if one["pid"] == 103) == sorted(newest)
