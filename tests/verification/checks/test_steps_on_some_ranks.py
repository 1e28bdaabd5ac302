"""Optimizers that only some ranks step."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.steps_on_some_ranks import check
from phalanx.verification.evidence import Evidence, RankEvidence
from tests.verification.made import Job, call


def idle_on_rank_1(*events: list[Any]) -> Evidence:
    whole = Job(events=lambda rank, step: list(events)).evidence
    passes = [["backward", {"line": "train.py:16"}]] * 4
    left = tuple(record for record in whole.ranks[1].records if record["k"] != "step")
    return Evidence({0: whole.ranks[0], 1: RankEvidence(1, (*left, {"k": "end", "events": passes}))}, 2)


def test_rank_0_alone() -> None:
    (found,) = check(idle_on_rank_1())
    assert found.headline.startswith("Only rank 0 steps the optimizer (train.py:20): rank 1 computes")


def test_a_learner_that_hands_out_its_weights_and_a_healthy_job() -> None:
    assert not list(check(idle_on_rank_1(call("param", "broadcast"))))
    assert not list(check(Job().evidence))
