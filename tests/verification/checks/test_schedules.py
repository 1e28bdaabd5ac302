"""Schedules and the steps they were made for."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.schedules import check
from tests.verification.made import Job


def paced(each: int, told: dict[str, Any], *, cls: str = "CosineAnnealingLR", steps: int = 8, passes: int = 1, by: str = "__main__",
          rate: Any = lambda rank, step: 0.1, more: Any = ()) -> list[str]:  # fmt: skip
    scheduler = {"k": "scheduler", "s": 0, "o": 0, "cls": cls, "line": "train.py:10", "told": told}

    def events(rank: int, step: int) -> list[list[Any]]:
        backward = [["backward", {"line": "train.py:16"}]] * passes
        stepped = [["schedule", {"s": 0, "at": each * step, "line": "train.py:21", "by": by}]] * each if step else []
        return stepped + backward

    job = Job(steps=steps, events=events, more=lambda rank: [scheduler, *more], rate=rate)
    return [one.cause for one in check(job.evidence)]


def test_one_step_for_one_step_within_the_horizon() -> None:
    assert paced(1, {"T_max": 8}) == []
    assert paced(1, {"T_max": 100}) == []


def test_once_for_each_micro_batch_or_rank() -> None:
    assert paced(4, {"T_max": 100}, passes=4) == ["scheduler-steps-too-often"]
    assert paced(2, {"T_max": 100}) == ["scheduler-steps-too-often"]
    assert paced(3, {"T_max": 100}) == [], "nothing says why"
    assert paced(4, {"T_max": 28}, passes=4) == [], "made for so many: it ends with the training"


def test_accelerate_steps_for_each_rank_by_design_and_its_horizon_must_know() -> None:
    assert paced(2, {"num_training_steps": 16}, by="accelerate") == []
    assert paced(2, {"num_training_steps": 8}, by="accelerate") == ["schedule-ends-too-early"]


def test_epochs_taken_for_batches() -> None:
    assert paced(1, {"T_max": 3}, steps=12) == ["schedule-ends-too-early"]
    assert paced(1, {"step_size": 1}, cls="StepLR", rate=lambda rank, step: 0.1**step) == ["learning-rate-collapses"]
    assert paced(1, {"step_size": 100}, cls="StepLR") == []


def test_the_batches_of_all_ranks_together() -> None:
    loader = {"k": "loader", "l": 0, "told": {"num_replicas": 2}, "length": 256, "batch_size": 16}
    epoch = {"k": "epoch", "l": 0, "e": 0, "step": 0}
    assert paced(1, {"T_max": 16}, more=(loader, epoch)) == ["schedule-not-divided-by-ranks"]
    assert paced(1, {"T_max": 17}, more=(loader, epoch)) == []


def test_accelerate_and_a_schedule_of_epochs() -> None:
    def stepped(each: int, by: str) -> list[str]:
        scheduler = {"k": "scheduler", "s": 0, "o": 0, "cls": "StepLR", "line": "train.py:10", "told": {"step_size": 1}}

        def events(rank: int, step: int) -> list[list[Any]]:
            at = {"s": 0, "at": each * step // 4, "line": "train.py:21", "by": by}
            return [["schedule", at]] * each if step in (4, 8) else []

        return [one.cause for one in check(Job(steps=12, events=events, more=lambda rank: [scheduler]).evidence)]

    assert stepped(2, "accelerate") == ["scheduler-steps-too-often"]
    assert stepped(1, "accelerate") == []
    assert stepped(1, "__main__") == []


def test_a_rate_of_zero_long_before_the_end() -> None:
    ends = lambda rank, step: max(0.0, 0.1 - 0.025 * step)  # noqa: E731
    assert paced(2, {}, cls="LambdaLR", by="accelerate", rate=ends) == ["schedule-ends-too-early"]
    assert paced(1, {}, cls="LambdaLR", steps=5, rate=ends) == [], "zero in its last step only"


def test_two_lines_that_both_step_it() -> None:
    scheduler = {
        "k": "scheduler",
        "s": 0,
        "o": 0,
        "cls": "CosineAnnealingLR",
        "line": "train.py:10",
        "told": {"T_max": 100},
    }

    def events(rank: int, step: int) -> list[list[Any]]:
        at = [["schedule", {"s": 0, "at": 2 * step, "line": f"train.py:{line}", "by": ""}] for line in (21, 40)]
        return [*(at if step else []), ["backward", {"line": "train.py:16"}]]

    (found,) = check(Job(size=3, steps=8, events=events, more=lambda rank: [scheduler]).evidence)
    assert found.cause == "scheduler-steps-too-often"
    assert "2 times for each optimizer step, at train.py:21 and at train.py:40" in found.headline
