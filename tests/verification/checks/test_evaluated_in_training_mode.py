"""Evaluation without `model.eval()`."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.evaluated_in_training_mode import check
from phalanx.verification.evidence import Evidence
from tests.verification.passes import job, loader, one_pass


def evaluated(trains: bool = False, **told: Any) -> Evidence:
    records = [loader(1), *one_pass(range(8), 1, trains=trains, evals=told)]
    return job(records, records)


def test_dropout_still_drops() -> None:
    (found,) = check(evaluated(training=True))
    assert "evaluated in training mode at train.py:20: Dropout behaves as in training" in found.headline


def test_healthy_jobs_give_nothing() -> None:
    assert not list(check(evaluated(training=False)))
    assert not list(check(evaluated(training=True, layers=[]))), "nothing in it behaves otherwise"
    assert not list(check(evaluated(trains=True))), "part of training"
