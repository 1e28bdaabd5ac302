"""What is wanted once is found although its first needle stands on a line that is not meant."""

from __future__ import annotations

import re

import pytest

from phalanx.sources import Collector, Pattern, from_text

from ..conftest import Diagnose


def _found(expression: str, literal: str, text: str, *, is_common: bool = False) -> list[str]:
    pattern = Pattern("asked", re.compile(expression), frozenset((literal,)), is_common=is_common, once=True)
    seen = Collector([pattern], {}).collect([from_text("job.log", text)])
    return [match.event.text for match in seen.matches]


@pytest.mark.parametrize("is_common", [False, True], ids=["literal", "expression"])
@pytest.mark.parametrize("between", [0, 30_000], ids=["near", "far below"])
def test_a_false_first_occurrence_hides_no_true_one(is_common: bool, between: int) -> None:
    text = (
        "world size 1 of a job that says much more than is meant\n"
        + "an ordinary line\n" * between
        + "world size 1 again, but with as many words behind it\nworld size 1 here\nworld size 1 there\n"
    )
    assert _found(r"world size 1.{0,12}$", "world size 1", text, is_common=is_common) == ["world size 1 here"]


def test_prefixes_of_ranks_are_no_part_of_a_line() -> None:
    text = "".join(f"[rank{rank}]: hello\n" for rank in range(4)) + "it said [rank3] has left\n"
    assert _found(r"\[rank\d", "[rank", text) == ["it said [rank3] has left"]


def test_the_search_ends_where_nothing_is_ever_meant() -> None:
    assert _found(r"^never$", "lamp", "a lamp\n" * 200_000) == []


def test_a_syntax_error_below_ordinary_frames(diagnose: Diagnose) -> None:
    log = (
        'Traceback (most recent call last):\n  File "/home/user/train.py", line 3, in <module>\n    import model\n'
        '  File "/home/user/model.py", line 12\n    match x\n          ^\nSyntaxError: invalid syntax\n'
    )
    verdict = diagnose(log).verdict
    assert verdict is not None
    assert verdict.rule == "IMP021"
