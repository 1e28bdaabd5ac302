"""Evaluations that leave samples out."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.evaluation_incomplete import check
from phalanx.verification.evidence import Evidence
from tests.verification.made import call
from tests.verification.passes import job, loader, one_pass


def evaluated(length: int, calls: list[list[Any]], **told: Any) -> Evidence:
    shares = [[0, 2, 4, 6], [1, 3, 5, 7]]
    return job(
        *(
            [loader(1, num_replicas=2, rank=rank, length=length, **told), *one_pass(ids, 1, trains=False, calls=calls)]
            for rank, ids in enumerate(shares)
        )
    )


SUMMED = [call("", "allreduce", n=2)]


def test_batches_and_shares_that_are_cut() -> None:
    (found,) = check(evaluated(13, SUMMED, drop_last=True))
    assert "5 of 13 evaluation samples are never evaluated" in found.headline


def test_complete_evaluations_and_results_that_nobody_joins() -> None:
    assert not list(check(evaluated(8, SUMMED, drop_last=True)))
    assert not list(check(evaluated(13, SUMMED)))
    assert not list(check(evaluated(13, [["forward", {}]], drop_last=True)))
