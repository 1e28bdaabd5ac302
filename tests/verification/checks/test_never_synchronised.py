"""Ranks that never exchange gradients, on purpose or not."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.never_synchronised import check
from tests.verification.made import Job, call, mean, vector


def alone(**told: Any) -> Job:
    return Job(wrapped=False, reduce=lambda own, rank, index: own[rank], **told)


def test_a_model_that_nobody_wrapped() -> None:
    (found,) = check(alone(events=lambda rank, step: [call("", n=1)]).evidence)
    assert found.cause == "gradients-never-synchronised"
    assert "2 ranks each train a `Net` of their own" in found.headline
    assert "none of them on gradients" in found.headline


def test_healthy_jobs_give_nothing() -> None:
    assert not list(check(Job().evidence))
    assert not list(check(Job(wrapped=False, events=lambda rank, step: [call("grad")]).evidence))


def test_models_meant_to_be_apart_give_nothing() -> None:
    assert not list(check(alone(start=lambda rank, index: vector("w", rank, index)).evidence)), (
        "other weights from the start"
    )
    assert not list(check(alone(rate=lambda rank, step: 0.1 + rank).evidence)), "other rates"
    saves = alone(more=lambda rank: [{"k": "save", "path": f"model{rank}.pt", "line": "train.py:30"}])
    assert not list(check(saves.evidence)), "each rank keeps its own"
    assert not list(check(alone(events=lambda rank, step: [call("", "send")]).evidence)), "stages of a pipeline"
    assert not list(check(alone(events=lambda rank, step: [call("param")]).evidence)), "local SGD"


def test_a_sampler_that_divides_the_data_says_what_was_meant() -> None:
    loader = {"k": "loader", "l": 0, "told": {"num_replicas": 2, "rank": 0}}
    job = alone(start=lambda rank, index: vector("w", rank, index), more=lambda rank: [loader])
    assert [one.cause for one in check(job.evidence)] == ["gradients-never-synchronised"]


def test_a_script_that_is_not_distributed_at_all() -> None:
    def same(rank: int, step: int, index: int) -> list[float]:
        return vector("g", step, index)

    assert not list(check(alone(own=same).evidence)), "with a process group the data are at fault, not the wrapping"
    assert [one.cause for one in check(alone(own=same, has_group=False).evidence)] == ["ranks-repeat-the-same-work"]


def partly_sharded(own: Any = None, mark: Any = lambda rank, step: [rank, step]) -> list[str]:
    held = [[0, "fc1.weight", [3], "float32", True, 0, None], [None, "fc2.weight", [3], "float32", True, 0, None]]

    def more(rank: int) -> list[dict[str, Any]]:
        shard = [[rank], [2], [0, 1]]
        rows = [held[0], [*held[1][:6], shard]]
        return [{"k": "optimizer", "o": 0, "cls": "SGD", "line": "train.py:9", "parameters": rows, "hyper": [{}]}]

    def events(rank: int, step: int) -> list[list[Any]]:
        forward = ["forward", {"m": 0, "training": True, "line": "train.py:14", "mark": mark(rank, step)}]
        return [forward, call("", "allgather_base", n=6, forward=True)]

    reduce = own or (lambda own, rank, index: own[rank])
    return [one.cause for one in check(Job(wrapped=False, reduce=reduce, more=more, events=events).evidence)]


def test_parts_that_fully_shard_was_not_given() -> None:
    assert partly_sharded() == ["gradients-partly-reduced"]
    assert partly_sharded(own=lambda own, rank, index: mean(own)) == [], "somebody reduces them"
    assert partly_sharded(mark=lambda rank, step: [step]) == [], "the same input: tensor parallelism"
