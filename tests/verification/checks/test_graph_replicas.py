"""TensorFlow's workers that do not train one model, or not on different data."""

from __future__ import annotations

from phalanx.verification.checks.graph_replicas import check
from tests.verification.graph_jobs import graph_job


def test_a_healthy_job_gives_nothing() -> None:
    assert not list(check(graph_job()))


def test_variables_outside_of_the_scope() -> None:
    (found,) = check(graph_job(update=lambda rank: 1.0 + rank))
    assert (found.cause, found.line) == ("gradients-never-synchronised", "train.py:3")
    assert "1 of 2 variables differ, first `dense/kernel`" in found.headline
    assert "strategy.scope()" in found.do


def test_a_broadcast_that_is_missing() -> None:
    (found,) = check(graph_job(start=lambda rank: 5.0 * rank, framework="horovod"))
    assert found.cause == "initial-weights-differ"
    assert "hvd.broadcast_variables" in found.do


def test_the_same_batches_everywhere() -> None:
    (found,) = check(graph_job(sample=lambda rank, call: [call, call + 100]))
    assert found.cause == "data-not-sharded"
    assert "the first 4 batches (8 samples) are the same on every rank" in found.headline
    assert not list(check(graph_job(sample=lambda rank, call: [1, 2]))), "one batch again and again: a smoke test"
