"""Horovod's timeline: files that real jobs of three ranks wrote (Horovod 0.28.1, Gloo)."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from phalanx.model.trace import CallState
from phalanx.sources.inputs import find_inputs, from_text
from phalanx.sources.traces import find_traces, read_traces
from phalanx.sources.traces.protocol import RankTrace, UnreadableError
from phalanx.sources.traces.readers import horovod_timeline

RECORDED = Path(__file__).parent / "recorded"


def read(name: str, cut: float = 1.0) -> dict[int, RankTrace]:
    data = (RECORDED / name).read_bytes()
    return {one.rank: one for one in horovod_timeline.read(name, data[: int(len(data) * cut)]) if one.rank is not None}


def test_a_healthy_job_has_all_calls_ended_on_all_ranks() -> None:
    found = read("horovod-healthy.json")
    assert sorted(found) == [0, 1, 2]
    for one in found.values():
        assert set(one.columns["state"]) == {int(CallState.COMPLETED)}
        assert len(one.columns["seq"]) == 24
        assert one.columns["op"][:4] == [
            "allreduce of grad.weight",
            "allreduce of grad.bias",
            "broadcast of state",
            "allgather of metrics",
        ]
        assert one.columns["shape"][0] == "[64, 4]"
        assert one.groups[0].members == (0, 1, 2)


def test_a_negotiation_without_end_shows_who_did_not_come() -> None:
    found = read("horovod-stalled.json")
    waiting = {
        rank: [op for op, state in zip(one.columns["op"], one.columns["state"], strict=True) if state == 0]
        for rank, one in found.items()
    }
    assert waiting[1] == [], "rank 1 slept"
    assert waiting[0][:2] == ["allreduce of grad.layer0", "allreduce of grad.layer1"]
    assert waiting[2][:2] == waiting[0][:2]
    assert len(waiting[0]) >= 10


def test_marks_that_horovod_had_not_written_out_accuse_nobody() -> None:
    found = read("horovod-last-unwritten.json")
    assert all(set(one.columns["state"]) == {int(CallState.COMPLETED)} for one in found.values())
    assert "may not be written out" in found[0].notes[0][0]


def test_known_tensors_are_negotiated_without_marks_and_that_is_said() -> None:
    assert any("HOROVOD_CACHE_CAPACITY=0" in needs for _, needs in read("horovod-slow.json")[0].notes)


def test_a_killed_job_s_file_is_read_as_far_as_it_goes() -> None:
    whole, part = read("horovod-healthy.json"), read("horovod-healthy.json", cut=0.6)
    assert part[0].truncated
    assert part[0].columns["op"][:8] == whole[0].columns["op"][:8]


def test_it_is_recognised_and_becomes_one_job() -> None:
    inputs, _ = find_inputs([str(RECORDED / "horovod-stalled.json")])
    found, _ = find_traces(inputs)
    traces = read_traces(found)[0]
    assert traces.world_size == 3
    ends = traces.calls.group_by("rank").agg(pl.col("seq").max()).sort("rank").get_column("seq").to_list()
    assert ends[1] < ends[0]
    assert ends[1] < ends[2]
    others = find_traces([from_text("other.json", '[{"ph": "X", "name": "step", "ts": 1, "pid": 1}]')])[1]
    assert len(others) == 1, "another program's trace events"


def test_nothing_but_noise_is_said() -> None:
    with pytest.raises(UnreadableError):
        list(horovod_timeline.read("x.json", b'[{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 1, "pid": 1}]'))
    with pytest.raises(UnreadableError):
        list(horovod_timeline.read("x.json", b"[garbage"))


def test_a_rank_beyond_any_world_is_refused() -> None:
    data = (RECORDED / "horovod-healthy.json").read_bytes()
    assert b'"name": "2"' in data
    with pytest.raises(UnreadableError, match="rank 4000000000"):
        list(horovod_timeline.read("t.json", data.replace(b'"name": "2"', b'"name": "4000000000"')))
