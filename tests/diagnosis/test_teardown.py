"""What is printed while a process is taken down explains nothing."""

from __future__ import annotations

from phalanx.diagnosis.teardown import announced_by_watchdog, without_teardown
from phalanx.model import Event, EventKind, Frame

from ..conftest import Diagnose

WORK = "WorkNCCL(SeqNum=48213, OpType=ALLREDUCE, NumelIn=524288, NumelOut=524288, Timeout(ms)=600000) ran for 600021 milliseconds before timing out."
SAID = "[rank{0}]:[E1117 10:11:12.000 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation timeout: {1}\n"
THROWN = (
    "terminate called after throwing an instance of 'c10::DistBackendError'\n"
    "  what():  [PG ID 0 PG GUID 0(default_pg) Rank {0}] Process group watchdog thread terminated with exception: [Rank {0}] Watchdog caught collective operation timeout: {1}\n"
)
FAILED = "E1117 10:11:25.000000 100 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -6) local_rank: 0 (pid: 200) of binary: python\n"


def test_fifteen_watchdogs_of_sixteen_in_one_file(diagnose: Diagnose) -> None:
    """The commonest console of all: unprefixed native aborts after the watchdogs' own lines."""
    ranks = [rank for rank in range(16) if rank != 5]
    log = "step 48200 loss 2.3\n" + "".join(SAID.format(rank, WORK) for rank in ranks)
    log += "".join(THROWN.format(rank, WORK) for rank in ranks) + FAILED
    report = diagnose({"job.log": log})
    verdict = report.verdict
    assert verdict is not None
    assert (verdict.rule, verdict.culprit_ranks, verdict.accused_by) == ("HNG001", (5,), "never-joined")
    assert [found.rule for found in report.findings] == ["HNG001"]


def event(kind: EventKind, line: int, source: str, rank: int | None = None, function: str = "") -> Event:
    frames = (Frame("/home/user/train.py", 9, function),) if function else ()
    return Event(kind, "std::runtime_error: boom", "job.log", line, rank, source=source, frames=frames)


def test_a_native_abort_counts_unless_a_watchdog_announced_it() -> None:
    abort = event(EventKind.EXCEPTION, 9, "native")
    said = event(EventKind.TIMEOUT, 3, "nccl-watchdog", 2)
    assert without_teardown([abort], [abort]) == [abort]
    assert without_teardown([abort], [said, abort]) == []
    before = event(EventKind.EXCEPTION, 1, "native")
    assert without_teardown([before], [before, said]) == [before]
    assert announced_by_watchdog([said, abort]) == {2}


def test_a_finalizer_explains_nothing_after_another_failure() -> None:
    own = event(EventKind.EXCEPTION, 1, "traceback", 0, "train")
    finalizer = event(EventKind.EXCEPTION, 5, "traceback", 0, "__del__")
    assert without_teardown([own, finalizer], []) == [own]
    assert without_teardown([finalizer], []) == [finalizer]


def test_an_asynchronous_error_of_nccl_is_the_watchdogs_in_every_release(diagnose: Diagnose) -> None:
    lost = "NCCL error: remote process exited or there was a network error, NCCL version 2.14.3\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\nLast error:\nsocketProgress: Connection closed by remote peer 10.0.0.2<4711>\n"
    log = f"step 1 loss 0.5\nterminate called after throwing an instance of 'std::runtime_error'\n  what():  {lost}" * 2
    report = diagnose({"job.log": log})
    assert report.verdict is not None
    assert report.verdict.rule == "CER004"
