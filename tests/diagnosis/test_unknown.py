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
