"""Exceptions and deaths that no rule knows, beside those that rules explain."""

from __future__ import annotations

from ..conftest import Diagnose
from .test_verdicts import CLOSED, steps, trace

ODD = trace(90, "finish()", "mylib.CleanupFailed: the writer is gone")


def test_what_a_rank_raises_after_it_lost_its_peers_is_no_claim_of_its_own(diagnose: Diagnose) -> None:
    logs = {f"rank{rank}.log": steps(20) + CLOSED + ODD for rank in (0, 1)}
    report = diagnose(logs)
    assert report.verdict is not None
    assert report.verdict.rule is not None
    assert all(found.rule is not None for found in report.findings)


def test_what_a_rank_raises_before_its_peers_lose_it_is(diagnose: Diagnose) -> None:
    report = diagnose({"rank0.log": steps(20) + CLOSED, "rank1.log": steps(20) + ODD})
    assert report.verdict is not None
    assert (report.verdict.rule, report.verdict.culprit_ranks) == (None, (1,))


def test_who_raised_without_a_label_before_others_timed_out_is_not_one_of_them(diagnose: Diagnose) -> None:
    said = "[Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001 milliseconds before timing out."
    waiting = "".join(f"[rank{rank}]:[E ProcessGroupNCCL.cpp:523] {said.format(rank)}\n" for rank in (0, 1, 2))
    abort = f"terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  {said.format(0)}\n"
    report = diagnose({"job.log": steps(20) + ODD + waiting + abort})
    assert report.verdict is not None
    assert "CleanupFailed" in report.verdict.headline
