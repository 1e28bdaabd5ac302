"""Optimizers that are set otherwise on one rank."""

from __future__ import annotations

from phalanx.verification.checks.settings_differ import check
from tests.verification.made import Job


def test_equal_settings_give_nothing() -> None:
    assert not list(check(Job().evidence))


def test_rates_are_told_with_their_ranks() -> None:
    (found,) = check(Job(size=3, rate=lambda rank, step: 0.1 * (1 + (rank == 1))).evidence)
    assert found.cause == "learning-rates-differ"
    assert "0.2 on rank 1" in found.headline
    assert found.culprits == (1,)


def test_models_of_their_own_may_have_rates_of_their_own() -> None:
    job = Job(wrapped=False, reduce=lambda own, rank, index: own[rank], rate=lambda rank, step: 0.1 + rank)
    assert not list(check(job.evidence))


def test_a_state_that_only_one_rank_loaded() -> None:
    state = [[[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]]]
    job = Job(fields=lambda rank, step: {"state_before": (state if rank == 0 else [[], []]) if step == 0 else None})
    (found,) = check(job.evidence)
    assert found.cause == "optimizer-states-differ"
    assert "only rank 0 has one" in found.headline


def test_rates_that_are_tried_out_on_the_same_data() -> None:
    from tests.verification.made import vector

    job = Job(wrapped=False, own=lambda rank, step, index: vector("g", step, index), rate=lambda rank, step: 0.1 + rank)
    assert not list(check(job.evidence))
