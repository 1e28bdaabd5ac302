"""The generator of synthetic dumps: the bytes that PyTorch itself would write, and the fault that it says."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import polars as pl
import pytest

from ..made_traces import BENCH, made, read_folder, write_dumps

# Written by PyTorch 2.13's own recorder in a Gloo job of two ranks; only the paths in it were replaced.
REAL = Path(__file__).parent / "recorded" / "gloo_dump_rank_0"


def test_the_bytes_are_those_of_pytorch() -> None:
    sys.path.insert(0, str(BENCH))
    try:
        from dump_bytes import Frame, Memo, encode  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(BENCH))
    real = REAL.read_bytes()
    dump = pickle.loads(real)  # noqa: S301  our own file
    for entry in dump["entries"]:
        entry["frames"] = [Frame(one["name"], one["filename"], one["line"]) for one in entry["frames"]]
    assert len(dump["entries"]) == 9
    memo = Memo()
    body = b"\x80\x02" + encode(dump, memo)
    assert body + memo.put("end") + b"." == real


@pytest.mark.parametrize("fault", ["missing", "host-stall", "device-stall", "mismatch-op", "mismatch-shape"])
def test_the_job_stands_still_and_only_one_rank_is_odd(fault: str) -> None:
    traces = made(fault)
    stuck = traces.calls.filter(pl.col("state") < 2).get_column("rank").unique().to_list()
    assert set(stuck) >= set(range(16)) - {12}
    tensor = traces.groups.filter(pl.col("name") == "46").item(0, "group")
    own = traces.calls.filter((pl.col("group") == tensor) & (pl.col("state") < 2)).sort("seq").group_by("rank").first()
    facts = {row["rank"]: (row["op"], row["shape"], row["state"]) for row in own.iter_rows(named=True)}
    assert facts.get(12) != facts[13]


def test_a_dead_rank_leaves_no_file_and_the_truth_is_beside(tmp_path: Path) -> None:
    write_dumps(tmp_path / "dumps", "dead", rank=7)
    assert not (tmp_path / "dumps" / "nccl_trace_rank_7").exists()
    assert len(list((tmp_path / "dumps").iterdir())) == 15
    truth = json.loads((tmp_path / "dumps.truth.json").read_text(encoding="utf-8"))
    assert truth["ranks"] == [7]
    assert read_folder(tmp_path / "dumps").world_size == 16


def test_a_healthy_job_has_every_call_matched() -> None:
    traces = made("none")
    sizes = traces.groups.select("group", size=pl.col("members").list.len())
    newest = traces.calls.filter(~pl.col("p2p")).join(sizes, on="group")
    per_call = newest.group_by("group", "seq").agg(
        pl.col("rank").n_unique(), pl.col("size").first(), pl.col("op").n_unique()
    )
    last = per_call.sort("seq").group_by("group").last()
    assert (last.get_column("rank") == last.get_column("size")).all()
    assert per_call.get_column("op").max() == 1
