"""Gradients that a script reduces itself."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.reduced_by_hand import check
from tests.verification.made import Job, Vector, call, mean, vector

BACKWARD = ["backward", {"line": "train.py:16", "syncs": []}]


def by_hand(reduce: Any, *events: list[Any], **told: Any) -> list[str]:
    job = Job(wrapped=False, reduce=reduce, events=lambda rank, step: list(events), **told)
    return [one.cause for one in check(job.evidence)]


def own(all_own: list[Vector], rank: int, index: int) -> Vector:
    return all_own[rank]


def test_a_whole_reduction_gives_nothing() -> None:
    assert by_hand(lambda all_own, rank, index: mean(all_own), BACKWARD, call("grad")) == []


def test_some_are_left_out() -> None:
    partly = lambda all_own, rank, index: own(all_own, rank, index) if index else mean(all_own)  # noqa: E731
    assert by_hand(partly, BACKWARD, call("grad")) == ["gradients-partly-reduced"]
    starts = lambda rank, index: vector("w", rank, index)  # noqa: E731
    assert by_hand(partly, BACKWARD, call("grad"), start=starts) == [], "experts start with weights of their own"


def test_a_copy_that_never_comes_back() -> None:
    assert by_hand(own, BACKWARD, call("grad-copy")) == ["reduced-gradients-not-used"]


def test_after_the_step_is_too_late() -> None:
    assert by_hand(own, call("grad"), BACKWARD) == ["gradients-reduced-after-the-step"]


def test_over_two_of_four() -> None:
    def halves(all_own: list[Vector], rank: int, index: int) -> Vector:
        return mean(all_own[:2] if rank < 2 else all_own[2:])

    groups = lambda rank: [{"k": "group", "name": "1", "members": [0, 1] if rank < 2 else [2, 3]}]  # noqa: E731
    assert by_hand(halves, BACKWARD, call("grad", group="1"), size=4, more=groups) == [
        "gradients-reduced-over-wrong-group"
    ]


def test_over_itself_alone() -> None:
    groups = lambda rank: [{"k": "group", "name": "1", "members": [rank]}]  # noqa: E731
    assert by_hand(own, BACKWARD, call("grad", group="1"), more=groups) == ["gradients-reduced-over-wrong-group"]


def test_to_one_rank_only() -> None:
    first = lambda all_own, rank, index: mean(all_own) if rank == 0 else [2 * one for one in all_own[rank]]  # noqa: E731
    assert by_hand(first, BACKWARD, call("grad", op="reduce")) == ["gradients-reduced-to-one-rank"]
