"""Evaluation samples that another rank trains on."""

from __future__ import annotations

from collections.abc import Sequence

from phalanx.verification.checks.trained_on_evaluation_data import check
from tests.verification.passes import Record, job, loader, one_pass


def split(train: Sequence[int], held: Sequence[int]) -> list[Record]:
    return [loader(0), loader(1), *one_pass(train), *one_pass(held, 1, trains=False)]


def test_ranks_that_split_differently() -> None:
    (found,) = check(job(split(range(24), range(24, 32)), split(range(8, 32), range(8))))
    assert (
        "8 of the 8 samples that rank 0 evaluates (loader at train.py:6) are trained on by another rank"
        in found.headline
    )


def test_healthy_jobs_give_nothing() -> None:
    assert not list(check(job(split(range(0, 24, 2), range(24, 32)), split(range(1, 24, 2), range(24, 32)))))
    whole = split(range(32), range(8))
    assert not list(check(job(whole, whole))), "evaluating on training data on purpose"
