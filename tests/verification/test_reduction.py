"""What was done with the ranks' own gradients, from their sketches alone."""

from __future__ import annotations

import pytest

from phalanx.verification.reduction import Reduction, factor_of, factor_over, own_factor, reductions
from phalanx.verification.replicas import replicas_of
from tests.verification.made import Job, Vector, mean


def first_step(job: Job) -> list[Reduction]:
    _, steps = next(iter(job.evidence.common_steps(0)))
    return reductions(replicas_of(job.evidence, 0), steps)


def test_a_mean_and_a_sum() -> None:
    assert factor_of(first_step(Job())) == pytest.approx(1.0)
    assert factor_of(first_step(Job(size=3, reduce=lambda own, rank, index: mean(own, 3.0)))) == pytest.approx(3.0)


def test_a_gradient_that_is_no_multiple_of_the_mean() -> None:
    assert factor_of(first_step(Job(reduce=lambda own, rank, index: [own[0][0], own[1][1], 0.0]))) is None


def test_each_its_own_however_scaled() -> None:
    found = first_step(Job(reduce=lambda own, rank, index: [0.5 * one for one in own[rank]]))
    assert own_factor(found) == pytest.approx(0.5)
    assert not any(one.is_reduced for one in found)
    assert own_factor(first_step(Job())) is None


def test_over_a_part_of_the_ranks() -> None:
    def halves(own: list[Vector], rank: int, index: int) -> Vector:
        return mean(own[:2] if rank < 2 else own[2:], 2.0)

    found = first_step(Job(size=4, reduce=halves))
    assert factor_over(found, (0, 1)) == pytest.approx(2.0)
    assert factor_over(found, (0, 2)) is None
