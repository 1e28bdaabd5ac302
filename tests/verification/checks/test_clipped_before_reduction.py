"""Clipping and reducing, in either order."""

from __future__ import annotations

from phalanx.verification.checks.clipped_before_reduction import check
from tests.verification.made import Job, call

BACKWARD = ["backward", {"line": "train.py:16", "syncs": []}]
CLIP = ["clip", {"line": "train.py:17", "most": 1.0, "norm": 4.0}]


def test_by_their_order() -> None:
    (found,) = check(Job(wrapped=False, events=lambda rank, step: [BACKWARD, CLIP, call("grad")]).evidence)
    assert (found.cause, found.line) == ("clipped-before-reduction", "train.py:17")
    assert not list(check(Job(wrapped=False, events=lambda rank, step: [BACKWARD, call("grad"), CLIP]).evidence))
    assert not list(check(Job(events=lambda rank, step: [BACKWARD, call(""), CLIP]).evidence))
    assert not list(check(Job(events=lambda rank, step: [BACKWARD, CLIP, call("")]).evidence)), (
        "a reduced loss, for the log"
    )


def test_gradients_that_each_rank_scales_by_itself() -> None:
    def scaled(weights: tuple[float, float]) -> list[str]:
        reduce = lambda own, rank, index: [sum(w * one[axis] for w, one in zip(weights, own)) for axis in range(3)]  # noqa: B905, E731
        events = lambda rank, step: [call("grad")]  # noqa: E731
        return [one.cause for one in check(Job(wrapped=False, reduce=reduce, events=events).evidence)]

    assert scaled((0.1, 0.45)) == ["clipped-before-reduction"]
    assert scaled((0.5, 0.5)) == []
    assert scaled((0.25, 0.75)) == [], "weighted by the number of samples"
    assert scaled((1.0, 1.0)) == []
    assert scaled((0.25, 0.25)) == []
