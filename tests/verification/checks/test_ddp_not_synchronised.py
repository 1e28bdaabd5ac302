"""Gradients that differ under DDP, and why."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.ddp_not_synchronised import check
from tests.verification.made import Job, call, vector


def apart(*events: list[Any], **told: Any) -> Job:
    return Job(reduce=lambda own, rank, index: own[rank], events=lambda rank, step: list(events), **told)


def test_healthy_ddp_gives_nothing() -> None:
    assert not list(check(Job().evidence))


def test_the_forward_pass_goes_past_the_wrapper() -> None:
    inner = {"k": "model", "m": 1, "kind": "module", "cls": "Net", "inside": 0}
    job = apart(["forward", {"m": 1, "training": True, "line": "train.py:17"}], more=lambda rank: [inner])
    (found,) = check(job.evidence)
    assert found.cause == "forward-bypasses-wrapper"
    assert found.line == "train.py:17"
    assert "at step 1" in found.headline


def test_no_sync_around_the_last_pass() -> None:
    job = apart(
        ["forward", {"m": 0, "training": True, "line": "train.py:17"}],
        ["backward", {"syncs": [False], "line": "train.py:18"}],
    )
    (found,) = check(job.evidence)
    assert (found.cause, found.line) == ("no-sync-around-last-backward", "train.py:18")


def test_parameters_that_ddp_does_not_know_and_those_it_was_told_to_ignore() -> None:
    def told(ignored: list[str], *events: list[Any], **job: Any) -> Job:
        late = {
            "k": "wrapped",
            "m": 0,
            "line": "train.py:8",
            "members": [0, 1],
            "parameters": ["fc1.weight"],
            "ignored": ignored,
        }
        return Job(
            more=lambda rank: [late],
            reduce=lambda own, rank, index: own[rank] if index else [sum(two) / 2 for two in zip(*own, strict=True)],
            events=lambda rank, step: list(events),
            **job,
        )

    (found,) = check(told([]).evidence)
    assert found.cause == "parameters-added-after-wrapping"
    assert "`fc2.weight`" in found.headline
    (found,) = check(told(["fc2.weight"]).evidence)
    assert found.cause == "gradients-partly-reduced"
    assert "told to ignore `fc2.weight`" in found.headline
    by_hand = told(["fc2.weight"], call("grad"))
    assert not list(check(by_hand.evidence)), "somebody else reduces it"
    experts = told(["fc2.weight"], start=lambda rank, index: vector("w", rank, index))
    assert not list(check(experts.evidence)), "a part that is each rank's own"


def test_local_sgd_under_ddp_is_on_purpose() -> None:
    assert not list(check(apart(call("param")).evidence))


def test_another_cause_is_not_guessed() -> None:
    (found,) = check(apart(["forward", {"m": 0, "training": True, "line": "train.py:17"}]).evidence)
    assert found.cause == "gradients-not-synchronised"
