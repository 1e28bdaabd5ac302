"""Gradients that are the mean over ranks times a factor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phalanx.verification.checks.gradients_scaled import check
from phalanx.verification.evidence import Evidence
from tests.verification.made import Job, call, mean


def scaled(
    factor: float, passes: int = 1, loss: float | None = 1.0, kind: str = "mean", size: int = 2, **more: Any
) -> list[str]:
    backward = ["backward", {"line": "train.py:16", "factor": loss, "kind": kind, "syncs": []}]
    events = [*[backward] * passes, call("grad"), *more.pop("events", [])]
    count = more.pop("batches", passes)
    batches = [{"k": "batch", "l": 0, "step": step} for step in range(4) for _ in range(count)]
    reduce = lambda own, rank, index: mean(own, factor)  # noqa: E731
    job = Job(size=size, wrapped=False, reduce=reduce, events=lambda rank, step: events, more=lambda rank: batches)
    return [one.cause for one in check(job.evidence)]


def test_a_mean_gives_nothing() -> None:
    assert scaled(1.0) == []
    assert scaled(1.0, passes=4, loss=0.25) == []


def test_a_sum_is_named_as_such() -> None:
    assert scaled(2.0) == ["gradients-summed-not-averaged"]
    assert scaled(3.0, size=3) == ["gradients-summed-not-averaged"]
    assert scaled(2.0, passes=4, loss=0.25) == ["gradients-summed-not-averaged"]


def test_a_sum_of_losses_that_are_divided_already_is_right() -> None:
    assert scaled(2.0, loss=0.5) == []
    assert scaled(2.0, kind="sum", loss=1 / 32) == []
    assert scaled(2.0, loss=None, kind="") == []


def test_a_clipped_sum() -> None:
    clip = ["clip", {"line": "train.py:19", "most": 1.0, "norm": 4.0}]
    assert scaled(2.0 / 4.0, events=[clip]) == ["gradients-summed-not-averaged"]
    assert scaled(1.0 / 4.0, events=[clip]) == []


def test_divided_twice() -> None:
    assert scaled(0.5) == ["gradients-divided-twice"]


def test_accumulated_and_not_divided() -> None:
    assert scaled(1.0, passes=4) == ["accumulation-not-divided"]


def test_several_losses_of_one_batch_belong_together() -> None:
    assert scaled(1.0, passes=4, batches=1) == []


def test_a_loss_that_is_divided_by_the_ranks_under_a_mean(tmp_path: Path) -> None:
    divided = ["divided", {"line": "train.py:1", "loss": True}]
    backward = ["backward", {"line": "train.py:2", "factor": 0.5, "kind": "mean", "syncs": []}]

    def causes(text: str, *events: list[Any]) -> list[str]:
        (tmp_path / "train.py").write_text(f"{text}\n")
        made = Job(events=lambda rank, step: [*events, backward]).evidence
        return [one.cause for one in check(Evidence(made.ranks, made.size, tmp_path))]

    assert causes("loss = loss / world_size", divided) == ["gradients-divided-twice"]
    assert causes("loss = loss / 2", divided) == [], "half of a square, as people write it"
    assert causes("loss = 0.5 * loss") == []


def test_accumulated_passes_that_are_divided_twice() -> None:
    assert scaled(1.0, passes=4, loss=1 / 16) == ["accumulation-divided-twice"]
    assert scaled(1.0, passes=4, loss=1 / 8) == []


def test_a_loss_that_is_multiplied_by_the_number_of_ranks(tmp_path: Path) -> None:
    def found(text: str, *more: list[Any]) -> list[str]:
        (tmp_path / "train.py").write_text("\n" * 14 + f"{text}\nloss.backward()\n")
        events = [["backward", {"line": "train.py:16", "factor": 2.0, "kind": "mean", "syncs": []}], *more]
        made = Job(events=lambda rank, step: events).evidence
        return [one.cause for one in check(Evidence(made.ranks, made.size, tmp_path))]

    assert found("loss = loss * world_size") == ["loss-multiplied-by-ranks"]
    assert found("loss *= dist.get_world_size()") == ["loss-multiplied-by-ranks"]
    assert found("loss = 2 * loss") == []
    assert found("loss = loss * world_size", call("", op="allgather")) == [], "features of all ranks are in the loss"


def test_a_sum_behind_ddps_average() -> None:
    backward = ["backward", {"line": "train.py:16", "factor": 1.0, "kind": "mean", "syncs": []}]
    reduce = lambda own, rank, index: mean(own, 2.0)  # noqa: E731
    (found,) = check(
        Job(reduce=reduce, events=lambda rank, step: [backward, call("grad", line="train.py:18")]).evidence
    )
    assert "DDP has averaged them, and train.py:18 sums them over the ranks once more" in found.headline
