"""Optimizers whose parameters are not those that are trained."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.optimizer_holds_other_model import check
from tests.verification.made import NAMES, Job

EVENTS: list[list[Any]] = [
    ["forward", {"m": 0, "training": True, "line": "train.py:15"}],
    ["backward", {"line": "train.py:16"}],
]


def test_a_healthy_one_gives_nothing() -> None:
    assert not list(check(Job(events=lambda rank, step: EVENTS).evidence))


def test_no_gradient_at_any_step() -> None:
    fields = lambda rank, step: {"grad": [None, None], "own": [None, None]}  # noqa: E731
    (found,) = check(Job(events=lambda rank, step: EVENTS, fields=fields).evidence)
    assert found.cause == "parameters-without-gradient", "it holds those of the model that is called"
    held = [[-1, name, [3], "float32", True, 0, None] for name in NAMES]
    told = {"k": "optimizer", "o": 0, "cls": "SGD", "line": "train.py:9", "parameters": held, "hyper": [{}]}
    (found,) = check(Job(events=lambda rank, step: EVENTS, fields=fields, more=lambda rank: [told]).evidence)
    assert found.cause == "optimizer-holds-other-model"
    assert "none of its 2 parameters is one of the `Net`" in found.headline
    assert found.line == "train.py:9"


def test_steps_without_a_backward_pass_say_nothing() -> None:
    assert not list(check(Job(fields=lambda rank, step: {"grad": [None, None], "own": [None, None]}).evidence))


def test_a_layer_replaced_after_the_optimizer_was_made() -> None:
    held = [[0, "fc1.weight", [3], "float32", True, 0, None], [None, "#1", [3], "float32", True, 0, None]]
    again = {"k": "optimizer", "o": 0, "cls": "SGD", "line": "train.py:9", "parameters": held, "hyper": [{}]}

    def fields(rank: int, step: int) -> dict[str, Any]:
        return {"grad": [[1.0, 1.0, 1.0], None], "own": [[1.0, 1.0], None]}

    (found,) = check(Job(events=lambda rank, step: EVENTS, more=lambda rank: [again], fields=fields).evidence)
    assert found.cause == "optimizer-holds-replaced-parameters"
    assert "1 of 2 parameters" in found.headline
