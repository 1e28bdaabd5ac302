"""Time-outs of PyTorch's NCCL watchdog, as several releases print them."""

from __future__ import annotations

import pytest

from phalanx.model import EventKind

from .test_tracebacks import events

WORK = "WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=64, NumelOut=8, Timeout(ms)=600000)"


def _waits(text: str) -> list[tuple[int | None, dict[str, object]]]:
    kinds = (EventKind.TIMEOUT, EventKind.STALL)
    return [(event.rank, dict(event.data)) for event in events(text) if event.kind in kinds]


@pytest.mark.parametrize(
    ("status", "group"),
    [
        ("[PG ID 2 PG GUID 19(TENSOR_MODEL_PARALLEL_GROUP) Rank 1]  failure detected by watchdog at work sequence id: 812 PG status: last enqueued work: 813, last completed work: 811", "19"),
        ("[PG 3 (mesh_fsdp) Rank 1] Exception (either an error or timeout) detected by watchdog at work: 812, last enqueued NCCL work: 813, last completed NCCL work: 811.", "3"),
        ("[PG 3 Rank 1] Timeout at NCCL work: 812, last enqueued NCCL work: 813, last completed NCCL work: 811.", "3"),
    ],
)  # fmt: skip
def test_group_and_numbers_are_joined_to_the_time_out(status: str, group: str) -> None:
    text = (
        f"[rank13]:[E607 18:37:01.8 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation timeout: {WORK} "
        "ran for 600026 milliseconds before timing out.\n"
        f"[rank13]:[E607 18:37:01.8 ProcessGroupNCCL.cpp:2168] {status}\n"
    )
    [(rank, data)] = _waits(text)
    assert rank == 13, "the rank in the text is the one within the group"
    assert data == {
        "op": "ALLREDUCE",
        "seq": 812,
        "sizes": "64 in, 8 out",
        "timeout_s": 600.0,
        "waited_s": 600.026,
        "group": group,
        "group_rank": 1,
        "last_enqueued": 813,
        "last_completed": 811,
    }


def test_the_same_words_in_the_exception_are_not_another_time_out() -> None:
    said = (
        f"[Rank 1] Watchdog caught collective operation timeout: {WORK} ran for 600026 milliseconds before timing out."
    )
    text = (
        f"[rank1]:[E ProcessGroupNCCL.cpp:523] {said}\n"
        f"[rank1]:[E ProcessGroupNCCL.cpp:1182] [Rank 1] NCCL watchdog thread terminated with exception: {said}\n"
        "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        f"  what():  [Rank 1] NCCL watchdog thread terminated with exception: {said}\n"
    )
    assert len(_waits(text)) == 1
    assert not [event for event in events(text) if event.kind is EventKind.EXCEPTION]


def test_a_group_that_nothing_names_is_compared_with_nobody() -> None:
    text = f"[rank13]:[E ProcessGroupNCCL.cpp:523] [Rank 1] Watchdog caught collective operation timeout: {WORK} ran for 1 milliseconds\n"
    [(rank, data)] = _waits(text)
    assert rank == 13
    assert data["group"] == "of rank 13"


def test_older_releases_name_neither_group_nor_sizes() -> None:
    text = "Watchdog caught collective operation timeout: WorkNCCL(OpType=BROADCAST, TensorShape=[1])\n"
    assert _waits(text) == [(None, {"op": "BROADCAST"})]


def test_a_rank_that_another_makes_speak_tells_its_numbers() -> None:
    text = "[rank3]:[E606 09:09:08.1 ProcessGroupNCCL.cpp:1987] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump signal due to a collective timeout from  rank 1 and we will try our best to dump the debug info. Last enqueued NCCL work: 811, last completed NCCL work: 811.This is most likely\n"
    assert _waits(text) == [(3, {"group": "0", "last_enqueued": 811, "last_completed": 811})]
