"""What a call is given, from the source and the variables of a rank, and whether a condition on the rank chose it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from phalanx.run.watch.arguments import argument_at, chosen_aside
from phalanx.sources.rank_conditions import Variables, value_of


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0", 0),
        ("owner", 3),
        ("(rank + 1) % world", 0),
        ("dist.get_rank() ^ 1", 0),
        ("1 if rank == 1 else 0", 1),
        ("1 if rank == 2 else 0", 0),
        ("1 if rank == 1 and unknown else 0", None),  # what is not known is not guessed
        ("1 if rank == 2 and unknown else 0", 0),  # but a side that fails decides
        ("1 if rank == 1 or unknown else 0", 1),
        ("1 if not rank else 0", 0),
        ("owners[0]", None),
        ("owner // zero", None),
        ("unknown", None),
    ],
)
def test_expressions_of_whole_numbers(expression: str, expected: int | None) -> None:
    known = Variables.of({"owner": "3", "rank": "1", "world": "2", "zero": "0", "name": "'x'"}, 1, 2)
    assert value_of(ast.parse(expression, mode="eval").body, known) == expected


def aside(tmp_path: Path, source: str, told: dict[str, str], rank: int) -> str:
    """Of `broadcast` in the last line of a function's body."""
    script = tmp_path / "train.py"
    script.write_text("def train(rank, step):\n" + "\n".join(f"    {line}" for line in source.splitlines()) + "\n")
    given = argument_at(str(script), source.count("\n") + 2, "broadcast", ("src",), 1)
    assert given is not None
    return chosen_aside(str(script), *given, Variables.of(told, rank, 2))


@pytest.mark.parametrize(
    ("source", "owner", "expected"),
    [
        ("owner = 0\nif step > 9 and rank == 1:\n    owner = 1\ndist.broadcast(x, src=owner)", "1", "if step > 9 and rank == 1"),
        ("owner = 0\nif step > 9 and rank == 1:\n    owner = 1\ndist.broadcast(x, src=owner)", "0", ""),
        ("owner = 0\nif step > 9:\n    owner = 1\ndist.broadcast(x, owner)", "1", ""),  # every rank comes there
        ("dist.broadcast(x, 1 if rank == 1 else 0)", "", "if rank == 1"),
        ("dist.broadcast(x, 0 if rank != 1 else 1)", "", "else of if rank != 1"),
        ("dist.broadcast(x, 1 if rank > 0 else 0)", "", ""),  # half of the ranks, as likely as the other
        ("owner = best(x)\ndist.broadcast(x, owner)", "1", ""),
    ],
)  # fmt: skip
def test_a_condition_on_the_rank_that_chose_the_root(tmp_path: Path, source: str, owner: str, expected: str) -> None:
    assert aside(tmp_path, source, {"owner": owner, "rank": "1", "step": "12"}, 1) == expected


def test_the_common_choice_is_not_aside(tmp_path: Path) -> None:
    assert aside(tmp_path, "dist.broadcast(x, 1 if rank == 1 else 0)", {"rank": "0"}, 0) == ""
    assert aside(tmp_path, "dist.broadcast(x, 0 if rank != 1 else 1)", {"rank": "0"}, 0) == ""


def test_what_the_condition_would_have_given_as_well_is_not_aside(tmp_path: Path) -> None:
    source = "owner = 0\nif step > 9 and rank:\n    owner = rank\ndist.broadcast(x, owner)"
    assert aside(tmp_path, source, {"owner": "0", "rank": "0", "step": "12"}, 0) == ""
    assert aside(tmp_path, source, {"owner": "1", "rank": "1", "step": "12"}, 1) == "if step > 9 and rank"
