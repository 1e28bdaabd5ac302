"""What a condition on the rank says, read from its text."""

from __future__ import annotations

import ast

import pytest

from phalanx.lint.conditions import are_complements, asks_whether_distributed, polarity


@pytest.mark.parametrize(
    ("text", "agreed"),
    [
        ("local_rank == -1", True),
        ("local_rank != -1", True),
        ("local_rank > -1", True),
        ("rank is None", True),
        ("rank >= 0", True),
        ("rank < 0", True),
        ("rank == None", True),
        ("rank == 0", False),
        ("rank > 0", False),
        ("rank != 1", False),
        ("0 < rank < 4", False),
        ("rank == world - 1", False),
    ],
)
def test_conditions_on_which_all_ranks_agree(text: str, agreed: bool) -> None:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Compare)
    assert asks_whether_distributed(node) is agreed


@pytest.mark.parametrize(
    ("text", "on_zero", "on_one"),
    [
        ("rank == 0", True, False),
        ("rank != 0", False, True),
        ("rank > 0", False, True),
        ("rank < 1", True, False),
        ("rank in (0, 2)", True, False),
        ("rank not in [0]", False, True),
        ("not rank", True, False),
        ("dist.get_rank()", False, True),
        ("is_main_process()", True, False),
        ("not self.is_master", False, True),
        ("rank == 0 or verbose", True, None),
        ("rank == 0 and flag", None, False),
        ("rank == root", None, None),
        ("rank >= 0", None, None),
        ("verbose", None, None),
        ("step == 0", None, None),
        ("step == 0 and rank == 0", None, False),
        ("main_loss", None, None),
    ],
)
def test_polarity_is_known_or_none(text: str, on_zero: bool | None, on_one: bool | None) -> None:
    test = ast.parse(text, mode="eval").body
    assert (polarity(test, 0, _is_rank), polarity(test, 1, _is_rank)) == (on_zero, on_one)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("rank == 0", "rank != 0", True),
        ("rank == 0", "not rank", False),
        ("step == 0 and rank == 0", "step == 0 and rank != 0", True),
        ("step == 0 and rank == 0", "step == 1 and rank != 0", False),
        ("step == 0", "step != 0", False),
        ("rank == 0 and debug", "rank != 0", False),
    ],
)
def test_complements_divide_the_ranks_and_nothing_else(first: str, second: str, expected: bool) -> None:
    tests = [ast.parse(text, mode="eval").body for text in (first, second)]
    assert are_complements(tests[0], tests[1], _is_rank) is expected


def _is_rank(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return any(word in text for word in ("rank", "is_main_process", "is_master"))
