"""The condition under which a line stands, from real source files."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from phalanx.model import Frame
from phalanx.sources.rank_conditions import condition_above, condition_at, is_about_ranks
from phalanx.sources.user_code import parse_source, source_line

SOURCE = """\
def train(rank, steps):
    for step in range(steps):
        if rank == 2 and step == 5:
            evaluate()
        elif step == 7:
            log()
        else:
            work()
        if verbose:
            report()
        if is_main_process():
            save()
        else:
            wait()
        while rank != owner:
            poll()
if local_rank == 0:
    def evaluate():
        score()
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "train.py").write_text(SOURCE)
    return str(tmp_path / "train.py")


@pytest.mark.parametrize(
    ("line", "condition"),
    [
        (3, None),  # the test itself is made by all
        (4, "if rank == 2 and step == 5"),
        (6, "else of if rank == 2 and step == 5"),
        (8, "else of if rank == 2 and step == 5"),
        (10, None),
        (12, "if is_main_process()"),
        (14, "else of if is_main_process()"),
        (16, "while rank != owner"),
        (19, None),  # around a definition: says nothing about who calls
    ],
)
def test_every_line(file: str, line: int, condition: str | None) -> None:
    assert condition_at(file, line) == condition


def test_the_callers_condition_is_found_from_inside_the_called_function(file: str) -> None:
    frames = (Frame(file, 4, "train"), Frame(file, 19, "evaluate"))
    found = condition_above(frames)
    assert found is not None
    assert (found[0], found[1].line) == ("if rank == 2 and step == 5", 4)


@pytest.mark.parametrize("text", ["def broken(:\n", "\0", ""])
def test_a_file_that_cannot_be_parsed_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.py").write_text(text)
    assert condition_at(str(tmp_path / "train.py"), 1) is None
    assert condition_at(str(tmp_path / "missing.py"), 1) is None


def test_the_text_of_a_line(file: str) -> None:
    assert source_line(file, 4) == "evaluate()"
    assert source_line(file, 400) == ""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('json.loads(os.environ["TF_CONFIG"])["task"]["index"]', "rank"),
        ("hvd.rank()", "rank"),
        ("int(os.environ['RANK'])", "rank"),
        ('int(os.environ.get("SLURM_PROCID", 0))', "rank"),
        ("jax.process_index()", "rank"),
        ('config["task"]["type"]', "role"),
        ("load()", None),
        ("hvd.size()", None),
    ],
)
def test_a_name_that_was_given_the_rank(tmp_path: Path, given: str, expected: str | None) -> None:
    script = tmp_path / "job.py"
    script.write_text(f"me = {given}\nother = 1\nother = hvd.rank()\nif me == 0:\n    save()\nif other:\n    load()\n")
    tree = parse_source(str(script))
    assert tree is not None
    asked, mixed = (node for node in tree.body if isinstance(node, ast.If))
    assert is_about_ranks(asked.test) is (expected is not None)
    assert not is_about_ranks(mixed.test)  # sometimes something else
    assert isinstance(asked.test, ast.Compare)
    assert (getattr(asked.test.left, "stands_for", "") == "rank") is (expected == "rank")
