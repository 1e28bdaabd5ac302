"""The profiler's traces: a real Gloo job of four ranks (torch 2.13), and NCCL's form as PyTorch's source writes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phalanx.sources.inputs import find_inputs
from phalanx.sources.traces import find_traces, read_traces
from phalanx.sources.traces.protocol import RankTrace, UnreadableError
from phalanx.sources.traces.readers import kineto

RECORDED = Path(__file__).parent / "recorded"


def recorded(rank: int, **changes: object) -> RankTrace:
    trace = json.loads((RECORDED / f"kineto-rank{rank}.json").read_text(encoding="utf-8")) | changes
    return next(iter(kineto.read("trace.json", json.dumps(trace).encode())))


def test_a_gloo_job_in_the_order_of_the_program() -> None:
    own = recorded(2)
    assert own.rank == 2
    assert own.world_size == 4
    assert own.host == "node0"
    step = ["all_reduce", "all_reduce", "all_gather", "broadcast", "send", "barrier"]
    assert own.columns["op"] == step * 2
    assert own.columns["root"][3] == 1
    assert own.columns["peer"][4] == 3
    assert recorded(3).columns["op"][4] == "recv"
    assert recorded(3).columns["peer"][4] == 2
    assert own.columns["shape"][0] == "[[4, 4]]>"
    created, ended = own.columns["created_ns"], own.columns["completed_ns"]
    assert created == sorted(created)
    assert all(end > begin for begin, end in zip(created, ended, strict=True))


def test_with_several_groups_gloo_calls_are_not_compared_between_ranks() -> None:
    own = recorded(2)
    assert [group.members for group in own.groups] == [(2,)]
    assert "does not tell" in own.notes[0][0]


def test_with_one_group_they_are() -> None:
    info = {"rank": 1, "world_size": 4, "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1, 2, 3]}]}
    own = recorded(1, distributedInfo=info)
    assert [(group.name, group.members) for group in own.groups] == [("0", (0, 1, 2, 3))]
    assert own.notes == []


def test_nccl_calls_tell_their_group_and_kernels_when_they_ran() -> None:
    def comms(ts: float, name: str, pg: str, seq: int, **more: object) -> dict[str, object]:
        facts = {
            "Collective name": name,
            "dtype": "Float",
            "In msg nelems": 16,
            "Out msg nelems": 16,
            "Process Group Name": pg,
            "Seq": seq,
        }
        return {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": ts, "dur": 5.0, "args": facts | more}

    kernel = {
        "ph": "X",
        "cat": "kernel",
        "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        "ts": 30.0,
        "dur": 8.0,
        "args": {"Process Group Name": "0"},
    }
    events = [
        comms(10.0, "allreduce", "0", 7),
        comms(12.0, "wait", "0", 7),
        comms(20.0, "send", "3", 2, **{"Dst Rank": 5}),
        kernel,
    ]
    info = {
        "rank": 4,
        "world_size": 8,
        "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "ranks": list(range(8))}],
    }
    trace = {"schemaVersion": 1, "distributedInfo": info, "baseTimeNanoseconds": 1_000_000, "traceEvents": events}
    own = next(iter(kineto.read("trace.json", json.dumps(trace).encode())))
    assert own.columns["op"] == ["all_reduce", "send"]
    assert own.columns["seq"] == [7, 2]
    assert own.columns["p2p"] == [False, True]
    assert own.columns["peer"] == [None, 5]
    assert own.columns["started_ns"][0] == 1_000_000 + 30_000
    assert own.columns["completed_ns"][0] == 1_000_000 + 38_000
    assert [group.name for group in own.groups] == ["0", "3"]


def test_files_of_four_ranks_are_one_job() -> None:
    inputs, _ = find_inputs([str(path) for path in sorted(RECORDED.glob("kineto-rank*.json"))])
    found, others = find_traces(inputs)
    assert not others
    assert {one.reader for one in found} == {"kineto"}
    jobs = read_traces(found)
    assert len(jobs) == 1
    assert jobs[0].ranks == {0, 1, 2, 3}
    assert len(jobs[0].calls) == 48


def test_a_trace_that_breaks_off_is_read_as_far_as_it_goes() -> None:
    text = (RECORDED / "kineto-rank0.json").read_text(encoding="utf-8")
    own = next(iter(kineto.read("trace.json", text[: len(text) * 3 // 4].encode())))
    assert own.truncated
    assert 0 < len(own.columns["op"]) <= 12


def test_a_trace_without_collectives_is_said() -> None:
    with pytest.raises(UnreadableError, match="no collectives"):
        next(iter(kineto.read("trace.json", b'{"schemaVersion": 1, "traceEvents": []}')))
