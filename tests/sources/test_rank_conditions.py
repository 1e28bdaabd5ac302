"""Conditions on the rank: who passes them, and whether they name who comes or who does not."""

from __future__ import annotations

import ast

import pytest

from phalanx.sources.rank_conditions import Condition, singles_out


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("if rank == 0", True),
        ("if hvd.rank() == 0 and step % 10 == 0", True),
        ("if is_chief", True),
        ("if rank in (0, 1)", True),
        ("if rank != 1", False),
        ("if not (rank == 1 and step == 12)", False),
        ("if not is_chief", False),
        ("if rank > 0", False),
        ("else of if rank == 0", False),
        ("else of if rank != 0", True),
    ],
)
def test_who_is_named(condition: str, expected: bool) -> None:
    assert singles_out(condition) is expected


@pytest.mark.parametrize(
    ("test", "passes"),
    [
        ("rank == 0", [True, False]),
        ("not (rank == 1 and step == 12)", [True, None]),
        ("hvd.rank() in (1, 2)", [False, True]),
        ("rank == 0 or debug", [True, None]),
        ("is_main and ready", [None, False]),
        ("loss < 3", [None, None]),
    ],
)
def test_who_passes(test: str, passes: list[bool | None]) -> None:
    condition = Condition(ast.parse(test, mode="eval").body, True, 1)
    assert [condition.lets_in(rank) for rank in range(2)] == passes
