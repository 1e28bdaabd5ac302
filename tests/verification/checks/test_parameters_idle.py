"""Parameters that training does not reach."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.parameters_idle import check
from tests.verification.made import Job


def test_a_healthy_job_gives_nothing() -> None:
    assert not list(check(Job().evidence))


def test_half_of_them_without_a_gradient() -> None:
    def fields(rank: int, step: int) -> dict[str, Any]:
        return {"grad": [None, [1.0, 1.0, 1.0]], "own": [None, [1.0, 1.0]]}

    (found,) = check(Job(fields=fields).evidence)
    assert found.cause == "parameters-without-gradient"
    assert "1 of 2 trainable parameters" in found.headline
    assert "`fc1.weight`" in found.headline


def test_one_rank_that_has_a_gradient_is_enough() -> None:
    fields = lambda rank, step: {"grad": [None, [1.0, 1.0, 1.0]], "own": [None, [1.0, 1.0]]} if rank else {}  # noqa: E731
    assert not list(check(Job(fields=fields).evidence))


def test_updates_that_are_lost() -> None:
    still = [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    (found,) = check(Job(fields=lambda rank, step: {"before": still, "after": still}).evidence)
    assert found.cause == "weights-do-not-move"
    assert not list(check(Job(fields=lambda rank, step: {"before": still, "after": still, "lr": [0.0]}).evidence))
