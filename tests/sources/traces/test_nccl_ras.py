"""NCCL RAS reports, text and JSON. Re-stated from NCCL's source and documentation: it needs hardware that is not here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from phalanx.diagnosis import diagnose_inputs
from phalanx.knowledge import load_rules
from phalanx.model import Report
from phalanx.model.trace import CallState
from phalanx.sources.inputs import from_text
from phalanx.sources.traces import find_traces, read_traces
from phalanx.sources.traces.protocol import RankTrace, UnreadableError
from phalanx.sources.traces.readers import nccl_ras

HEAD = """\
NCCL version 2.24.3 compiled with CUDA 12.6
CUDA runtime version 12060, driver version 12060

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      1          4            1          4        4

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         1         4         4         4   RUNNING  {errors}

Errors
======

"""
MISMATCH = """\
Warnings
========

#0-0 (5e7a2c1f9b3d8e04) MISMATCH
  Communicator ranks have different AllReduce operation counts
  3 ranks have launched up to operation 1287
  Rank 2 has launched up to operation 1280 -- GPU 2 managed by process 41207 on node 10.1.0.2

"""
DEAD = """\
DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 41203 on node 10.1.0.1 managing GPU 3

#0-0 (5e7a2c1f9b3d8e04) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 3 -- GPU 3 managed by process 41203 on node 10.1.0.1

Warnings
========

"""


def read(text: str) -> dict[int, RankTrace]:
    return {one.rank: one for one in nccl_ras.read("ras.txt", text.encode()) if one.rank is not None}


def member(rank: int, count: int, dev: int | None = None) -> dict[str, Any]:
    status = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False}
    where = {"host": "10.1.0.1", "pid": 100 + (rank if dev is None else dev), "cuda_dev": rank if dev is None else dev}
    return {
        "rank": rank,
        **where,
        "nvml_dev": 0,
        "status": status,
        "collective_counts": {"AllReduce": count, "Broadcast": 5},
    }


def test_the_rank_behind_has_ended_what_others_left_behind() -> None:
    found = read(HEAD.format(errors="MISMATCH") + MISMATCH)
    assert sorted(found) == [0, 1, 2, 3]
    assert found[2].columns["seq"] == [1280]
    assert found[2].columns["state"] == [int(CallState.COMPLETED)]
    for rank in (0, 1, 3):
        assert found[rank].columns["seq"] == [1287]
        assert found[rank].columns["state"] == [int(CallState.STARTED)]
    assert found[0].groups[0].members == (0, 1, 2, 3)
    assert not found[0].notes, "so far behind, one report is enough"


def test_several_ranks_behind_are_listed_below_their_count() -> None:
    listed = "  2 ranks have launched up to operation 1280\n  Rank 1 -- GPU 1 managed by process 7 on node n\n  Rank 2 -- GPU 2 managed by process 8 on node n\n"
    text = MISMATCH.replace(
        "  3 ranks have launched up to operation 1287\n", "  2 ranks have launched up to operation 1287\n"
    )
    text = text.replace(text.splitlines(keepends=True)[6], listed)
    found = read(HEAD.format(errors="MISMATCH") + text)
    assert {rank: one.columns["seq"] for rank, one in found.items()} == {0: [1287], 1: [1280], 2: [1280], 3: [1287]}


def test_a_rank_that_does_not_answer_leaves_no_trace_but_is_a_member() -> None:
    found = read(HEAD.format(errors="INCOMPLETE") + DEAD)
    assert sorted(found) == [0, 1, 2]
    assert found[0].world_size == 4


def test_json_tells_all_counts_and_who_is_who_in_smaller_communicators() -> None:
    world = {"hash": "0xa", "size": 4, "ranks": [member(r, 10) for r in range(4)], "missing_ranks": []}
    pair = {"hash": "0xb", "size": 2, "ranks": [member(0, 7, dev=2), member(1, 4, dev=3)], "missing_ranks": []}
    report = {"nccl_version": "2.28.3", "communicators_count": 2, "communicators": [pair, world]}
    found = read(json.dumps(report))
    groups = {group.name: group.members for group in found[0].groups}
    assert groups["0xb AllReduce"] == (2, 3)
    of_pair = [group.name for group in found[3].groups].index("0xb AllReduce")
    assert (of_pair, 4, int(CallState.COMPLETED)) in list(
        zip(found[3].columns["group"], found[3].columns["seq"], found[3].columns["state"], strict=True)
    )
    assert found[3].host == "10.1.0.1"


def judged(text: str) -> Report:
    return diagnose_inputs([from_text("ras.txt", text)], load_rules())


def test_a_rank_far_behind_is_accused() -> None:
    verdict = judged(HEAD.format(errors="MISMATCH") + MISMATCH).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("perf.hang", (2,))


def test_nobody_is_accused_for_being_one_operation_behind() -> None:
    """A running job's ranks are never exactly level."""
    report = judged(HEAD.format(errors="MISMATCH") + MISMATCH.replace("1280", "1286"))
    assert report.verdict is None
    assert any("rank 2 is one AllReduce behind" in item.what for item in report.not_checked)


@pytest.mark.parametrize("ahead", range(4))
def test_one_rank_ahead_of_all_others_accuses_nobody(ahead: int) -> None:
    members = [member(rank, 11 if rank == ahead else 10) for rank in range(4)]
    world = {"hash": "0xa", "size": 4, "ranks": members, "missing_ranks": []}
    assert judged(json.dumps({"nccl_version": "2.28.3", "communicators": [world]})).verdict is None


def test_of_three_counts_only_the_far_one_is_accused() -> None:
    members = [member(rank, count) for rank, count in enumerate((12, 11, 4, 12))]
    world = {"hash": "0xa", "size": 4, "ranks": members, "missing_ranks": []}
    verdict = judged(json.dumps({"nccl_version": "2.28.3", "communicators": [world]})).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (2,)


def test_equal_counts_are_no_stall() -> None:
    world = {"hash": "0xa", "size": 4, "ranks": [member(r, 10) for r in range(4)], "missing_ranks": []}
    found = read(json.dumps({"nccl_version": "2.28.3", "communicators": [world]}))
    assert {state for one in found.values() for state in one.columns["state"]} == {int(CallState.COMPLETED)}


def test_reports_are_recognised_among_files() -> None:
    world = {"hash": "0xa", "size": 2, "ranks": [member(0, 1), member(1, 1)], "missing_ranks": []}
    inputs = [
        from_text("ras.txt", HEAD.format(errors="MISMATCH") + MISMATCH),
        from_text(
            "ras.json", json.dumps({"nccl_version": "2.28.3", "communicators_count": 1, "communicators": [world]})
        ),
        from_text("job.log", "NCCL version 2.24.3 compiled with CUDA 12.6\nstep 1\n"),
    ]
    traces, others = find_traces(inputs)
    assert [one.reader for one in traces] == ["nccl ras", "nccl ras"]
    assert [one.name for one in others] == ["job.log"]
    assert read_traces(traces[:1])[0].world_size == 4


def test_damage_is_said() -> None:
    with pytest.raises(UnreadableError):
        read('{"nccl_version": "2.28.3", "communicators": [{"hash"')
    with pytest.raises(UnreadableError):
        read(HEAD.format(errors="OK"))


def test_a_size_beyond_any_world_is_refused() -> None:
    report = {"nccl_version": "2.28.3", "communicators": [{"hash": "0x5", "size": 10**12, "ranks": []}]}
    with pytest.raises(UnreadableError, match="1000000000000 ranks"):
        list(nccl_ras.read("ras.json", json.dumps(report).encode()))


ONE_BEHIND = MISMATCH.replace("operation 1280", "operation 1286")


def test_one_report_in_which_a_rank_is_one_behind_accuses_nobody() -> None:
    report = diagnose_inputs([from_text("ras.txt", HEAD.format(errors="MISMATCH") + ONE_BEHIND)], load_rules())
    assert report.verdict is None
    assert any("a second report" in item.needs for item in report.not_checked)


@pytest.mark.parametrize("names", [("ras-1.txt", "ras-2.txt"), ("ras.txt",)], ids=["two files", "appended"])
def test_two_reports_name_who_did_not_move(names: tuple[str, ...]) -> None:
    text = HEAD.format(errors="MISMATCH") + ONE_BEHIND
    texts = [text] * 2 if len(names) == 2 else [text + text]
    inputs = [from_text(name, one) for one, name in zip(texts, names, strict=True)]
    report = diagnose_inputs(inputs, load_rules())
    assert report.verdict is not None
    assert report.verdict.culprit_ranks == (2,)


def test_two_reports_of_a_job_that_moves_accuse_nobody() -> None:
    first = HEAD.format(errors="MISMATCH") + ONE_BEHIND
    second = first.replace("1287", "1302").replace("1286", "1301")
    report = diagnose_inputs([from_text("ras-1.txt", first), from_text("ras-2.txt", second)], load_rules())
    assert report.verdict is None


def test_missing_ranks_as_the_first_release_lists_them() -> None:
    text = HEAD.format(errors="INCOMPLETE,MISMATCH") + (
        "#0-0 (5e7a2c1f9b3d8e04) INCOMPLETE\n  Missing communicator data from 2 ranks\n  The missing ranks: 1, 3\n\n"
        + MISMATCH
    )
    assert sorted(trace.rank for trace in nccl_ras.read("ras.txt", text.encode())) == [0, 2]


def absent(rank: int) -> dict[str, Any]:
    return {"rank": rank, "host": "10.1.0.1", "pid": 41203, "cuda_dev": 3, "nvml_dev": 3, "status": {"unresponsive": True, "considered_dead": True}}  # fmt: skip


def test_a_dead_process_is_named_where_the_counts_of_the_others_are_equal() -> None:
    report = diagnose_inputs([from_text("ras.txt", HEAD.format(errors="INCOMPLETE") + DEAD)], load_rules())
    assert report.verdict is not None
    assert report.verdict.culprit_ranks == (3,)
    assert "process 41203 on node 10.1.0.1" in report.verdict.headline


@pytest.mark.parametrize("comma", [",", ""], ids=["2.29", "2.28"])
def test_json_of_every_release_tells_who_is_missing(comma: str) -> None:
    world = {"hash": "0xa", "size": 4, "ranks": [member(r, 0) for r in range(3)], "missing_ranks": [absent(3)]}
    text = json.dumps({"nccl_version": "2.28.9", "communicators": [world]}, indent=2)
    text = text.replace('"nvml_dev": 3,', f'"nvml_dev": 3{comma}')
    report = diagnose_inputs([from_text("ras.json", text.replace('"Broadcast": 5', '"Broadcast": 0'))], load_rules())
    assert report.verdict is not None
    assert report.verdict.culprit_ranks == (3,)


def test_nobody_is_accused_where_most_are_out_of_reach() -> None:
    listed = "".join(f"  Rank {rank} -- GPU {rank} managed by process 7 on node n\n" for rank in (0, 1))
    dead = DEAD.replace("  Rank 3 -- GPU 3 managed by process 41203 on node 10.1.0.1\n", listed)
    report = diagnose_inputs([from_text("ras.txt", HEAD.format(errors="INCOMPLETE") + dead)], load_rules())
    assert report.verdict is None


def test_a_report_without_errors_is_said_beside_a_time_out() -> None:
    log = "[rank0]:[E1118 10:00:00.000000001 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n"
    report = diagnose_inputs([from_text("job.log", log), from_text("ras.txt", HEAD.format(errors="OK"))], load_rules())
    assert any("all ranks answered" in item.what and "no rank is missing" in item.needs for item in report.not_checked)
