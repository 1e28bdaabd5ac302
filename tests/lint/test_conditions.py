"""What a condition on the rank says, read from its text."""

from __future__ import annotations

import ast

import pytest

from phalanx.lint.conditions import asks_whether_distributed, polarity


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
    ],
)
def test_polarity_is_known_or_none(text: str, on_zero: bool | None, on_one: bool | None) -> None:
    test = ast.parse(text, mode="eval").body
    assert (polarity(test, 0), polarity(test, 1)) == (on_zero, on_one)
