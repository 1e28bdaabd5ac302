"""Gradients that nobody clears."""

from __future__ import annotations

from phalanx.verification.checks.gradients_carried import check
from tests.verification.made import Job


def test_cleared_gradients_give_nothing() -> None:
    assert not list(check(Job().evidence))


def test_never_cleared() -> None:
    (found,) = check(Job(fields=lambda rank, step: {"carried": [int(step > 0)] * 2}).evidence)
    assert found.cause == "gradients-not-cleared"
    assert "at step 2" in found.headline


def test_once_is_an_accident_of_accumulation_and_a_part_may_be_another_optimizers() -> None:
    assert not list(check(Job(fields=lambda rank, step: {"carried": [int(step == 2)] * 2}).evidence))
    assert not list(check(Job(fields=lambda rank, step: {"carried": [1, 0]}).evidence))
