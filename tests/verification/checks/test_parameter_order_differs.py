"""The order of DDP's parameters."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.parameter_order_differs import check
from tests.verification.made import NAMES, Job


def ordered(*orders: tuple[str, ...]) -> Job:
    def more(rank: int) -> list[dict[str, Any]]:
        return [
            {
                "k": "wrapped",
                "m": 0,
                "line": "train.py:8",
                "members": [0, 1],
                "parameters": list(orders[rank]),
                "ignored": [],
            }
        ]

    return Job(size=len(orders), more=more)


def test_one_of_three_has_another_order() -> None:
    (found,) = check(ordered(NAMES, NAMES[::-1], NAMES).evidence)
    assert found.culprits == (1,)
    assert "`fc1.weight` on one rank and `fc2.weight` on another" in found.headline


def test_the_same_order_and_other_models_give_nothing() -> None:
    assert not list(check(ordered(NAMES, NAMES).evidence))
    assert not list(check(ordered(NAMES, ("a", "b")).evidence))
