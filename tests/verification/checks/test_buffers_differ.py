"""Buffers of replicas."""

from __future__ import annotations

from collections.abc import Callable

from phalanx.verification.checks.buffers_differ import check
from tests.verification.made import Job, sketch, vector


def held(
    value: Callable[[int, int], list[float]], name: str = "mean", size: int = 2
) -> list[tuple[str, tuple[int, ...]]]:
    job = Job(size=size, fields=lambda rank, step: {"buffers": [[0, name, sketch(value(rank, step))]]})
    return [(one.cause, one.culprits) for one in check(job.evidence)]


def test_constants_that_differ() -> None:
    assert held(lambda rank, step: vector(rank)) == [("buffers-differ", ())]
    assert held(lambda rank, step: vector(rank == 2), size=3) == [("buffers-differ", (2,))]


def test_equal_ones_moving_ones_and_those_of_the_rank() -> None:
    assert not held(lambda rank, step: vector("same"))
    assert not held(lambda rank, step: vector(rank, step)), "statistics of the rank's own batches"
    assert not held(lambda rank, step: vector(rank), name="rank_offset")
