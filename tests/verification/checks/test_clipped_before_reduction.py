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
