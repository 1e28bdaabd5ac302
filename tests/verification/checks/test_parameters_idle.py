"""Parameters that training does not reach."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.parameters_idle import check
from phalanx.verification.found import Found
from tests.verification.made import Job


def test_a_healthy_job_gives_nothing() -> None:
    assert not list(check(Job().evidence))


def test_half_of_them_without_a_gradient() -> None:
    def fields(rank: int, step: int) -> dict[str, Any]:
        return {"grad": [None, [1.0, 1.0, 1.0]], "own": [None, [1.0, 1.0]]}

    (found,) = check(Job(fields=fields).evidence)
    assert found.cause == "parameters-without-gradient"
    assert "1 of 2 trainable parameters" in found.headline
    assert "`fc1.weight`" in found.headline


def test_one_rank_that_has_a_gradient_is_enough() -> None:
    fields = lambda rank, step: {"grad": [None, [1.0, 1.0, 1.0]], "own": [None, [1.0, 1.0]]} if rank else {}  # noqa: E731
    assert not list(check(Job(fields=fields).evidence))


def test_updates_that_are_lost() -> None:
    still = [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    (found,) = check(Job(fields=lambda rank, step: {"before": still, "after": still}).evidence)
    assert found.cause == "weights-do-not-move"
    assert not list(check(Job(fields=lambda rank, step: {"before": still, "after": still, "lr": [0.0]}).evidence))


def test_a_group_of_its_own_that_is_called_without_gradients() -> None:
    held = [[0, "fc1.weight", [3], "float32", True, 0, None], [0, "fc2.weight", [3], "float32", True, 1, None]]
    still = [1.0, 1.0, 1.0]

    def made(moves: bool = False, groups: bool = True, shut: bool = True) -> list[Found]:
        rows = held if groups else [[*row[:5], 0, None] for row in held]
        optimizer = {
            "k": "optimizer",
            "o": 0,
            "cls": "SGD",
            "line": "train.py:9",
            "parameters": rows,
            "hyper": [{}, {}],
        }
        unused = {
            "k": "wrapped",
            "m": 0,
            "line": "train.py:8",
            "members": [0, 1],
            "parameters": [],
            "ignored": [],
            "find_unused": True,
        }
        called = [{"k": "shut", "m": 0, "names": ["fc1.weight"], "line": "train.py:14"}] if shut else []

        def fields(rank: int, step: int) -> dict[str, Any]:
            at = [float(step), 1.0, 1.0] if moves else still
            return {
                "grad": [None, still],
                "own": [None, [1.0, 1.0]],
                "before": [at, still],
                "after": [at, [2.0, 2.0, 2.0]],
            }

        return list(check(Job(fields=fields, more=lambda rank: [optimizer, unused, *called]).evidence))

    (found,) = made()
    assert "`fc1.weight` never gets a gradient" in found.headline
    assert found.line == "train.py:14"
    assert not made(moves=True), "a momentum encoder: somebody writes it"
    assert not made(groups=False), "all parameters were given: it may be frozen in this way on purpose"
    assert not made(shut=False), "a head that is not used"
