"""FSDP2 whose last pass before a step does not reduce."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.sharded_held_back import check
from phalanx.verification.found import Found
from tests.verification.made import Job


def accumulated(held_back: list[bool], shard: Any = None) -> list[Found]:
    def more(rank: int) -> list[dict[str, Any]]:
        rows = [[0, name, [3], "float32", True, 0, shard and [[rank], [2], [0, 1]]] for name in ("a", "b")]
        return [{"k": "optimizer", "o": 0, "cls": "SGD", "line": "train.py:9", "parameters": rows, "hyper": [{}]}]

    passes = [["backward", {"line": "train.py:16", "syncs": [], "held_back": one}] for one in held_back]
    return list(check(Job(wrapped=False, more=more, events=lambda rank, step: passes).evidence))


def test_the_last_pass_is_held_back() -> None:
    (found,) = accumulated([False, True], shard=True)
    assert found.cause == "no-sync-around-last-backward"
    assert "the last of 2 passes before the optimizer steps at train.py:20" in found.headline


def test_healthy_jobs_give_nothing() -> None:
    assert not accumulated([True, False], shard=True)
    assert not accumulated([False, True]), "this optimizer holds nothing that is sharded"
