"""Meshes that share no rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phalanx.verification.checks.sharded_apart import check
from tests.verification.made import NAMES, Job, Vector, mean, vector


def sharded(mesh: Callable[[int], list[int]], **how: Any) -> list[str]:
    def told(rank: int) -> list[dict[str, Any]]:
        held = [[0, name, [3], "float32", True, 0, [[0], [3], mesh(rank)]] for name in NAMES]
        return [{"k": "optimizer", "o": 0, "cls": "SGD", "line": "train.py:9", "parameters": held, "hyper": [{}]}]

    alone: dict[str, Any] = {"reduce": _own} | how
    return [one.cause for one in check(Job(wrapped=False, more=told, **alone).evidence)]


def _own(own: list[Vector], rank: int, index: int) -> Vector:
    return own[rank]


def test_replicas_that_never_meet() -> None:
    assert sharded(lambda rank: [rank]) == ["gradients-reduced-over-wrong-group"]


def test_one_mesh_gradients_that_are_averaged_and_parts_of_their_own() -> None:
    assert sharded(lambda rank: [0, 1]) == []
    assert sharded(lambda rank: [rank], reduce=lambda own, rank, index: mean(own)) == []
    assert sharded(lambda rank: [rank], start=lambda rank, index: vector(rank, index)) == []
