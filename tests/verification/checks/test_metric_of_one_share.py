"""Evaluations whose results stay on their ranks."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.metric_of_one_share import check
from phalanx.verification.evidence import Evidence
from tests.verification.made import call
from tests.verification.passes import job, loader, one_pass


def evaluated(calls: list[list[Any]], **told: Any) -> Evidence:
    ranks = []
    for rank in range(2):
        ids = range(rank, 16, 2)
        dealt = loader(1, **{"num_replicas": 2, "rank": rank, **told})
        ranks.append([dealt, *one_pass(ids, 1, trains=False, calls=calls or [["clip", {}]])])
    return job(*ranks)


def test_no_collective_follows() -> None:
    (found,) = check(evaluated([]))
    assert found.cause == "metric-of-one-share"
    assert "rank 0: 8 of 16 samples" in found.headline
    assert list(check(evaluated([["forward", {}], call("", "allreduce")]))), "a reduction of the next training step"


def test_healthy_jobs_give_nothing() -> None:
    assert not list(check(evaluated([call("", "allreduce", n=2)])))
    assert not list(check(evaluated([call("", "allgather", n=8)])))
    plain = loader(1, sampler="SequentialSampler")
    whole = [plain, *one_pass(range(16), 1, trains=False, calls=[["clip", {}]])]
    assert not list(check(job(whole, whole))), "every rank evaluates all of it"
