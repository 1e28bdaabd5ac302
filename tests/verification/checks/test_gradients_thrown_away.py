"""Micro-batches whose gradients are cleared."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.gradients_thrown_away import check
from phalanx.verification.evidence import Evidence
from tests.verification.made import Job

ZEROED: list[Any] = ["zeroed", {}]


def micro(mark: int) -> list[list[Any]]:
    return [["forward", {"m": 0, "training": True, "mark": mark}], ["backward", {"line": "train.py:16"}]]


def stepped(*events: list[Any]) -> Evidence:
    return Job(events=lambda rank, step: list(events)).evidence


def test_cleared_for_each_micro_batch() -> None:
    (found,) = check(stepped(ZEROED, *micro(1), ZEROED, *micro(2), ZEROED, *micro(3)))
    assert "2 of 3 backward passes for each step are thrown away" in found.headline
    assert found.line == "train.py:16"


def test_healthy_jobs_give_nothing() -> None:
    assert not list(check(stepped(ZEROED, *micro(1), *micro(2))))
    assert not list(check(stepped(ZEROED, *micro(1))))
    assert not list(check(stepped(ZEROED, *micro(1), ZEROED, *micro(1)))), "one batch twice: SAM"


def test_a_step_that_is_left_out_now_and_then_is_no_accumulation() -> None:
    usual, after_skip = [ZEROED, *micro(1)], [ZEROED, *micro(1), ZEROED, *micro(2)]
    job = Job(steps=9, events=lambda rank, step: list(after_skip if step in (3, 6) else usual))
    assert not list(check(job.evidence))
