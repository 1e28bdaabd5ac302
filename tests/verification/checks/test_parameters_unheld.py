"""Trainable parameters that are in no optimizer."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.parameters_unheld import check
from tests.verification.made import Job


def job(*names: str, moves: bool = False) -> Job:
    def fields(rank: int, step: int) -> dict[str, Any]:
        return {"unheld": [[0, name, [1.0 + step * moves, 2.0, 3.0]] for name in names]}

    return Job(fields=fields)


def test_a_parameter_that_the_groups_forget() -> None:
    (found,) = check(job("pos_embed").evidence)
    assert found.cause == "parameters-not-in-optimizer"
    assert found.headline.startswith("`pos_embed` gets gradients but is in no optimizer (made at train.py:9")


def test_what_moves_has_somebody_who_moves_it() -> None:
    assert not list(check(job("pos_embed", moves=True).evidence))


def test_whoever_trains_only_a_head_leaves_out_the_rest() -> None:
    assert not list(check(job("a", "b", "c").evidence))
    assert not list(check(job().evidence))
