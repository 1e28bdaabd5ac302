"""What is remembered by a line's shape is what the line itself tells."""

from __future__ import annotations

from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phalanx.sources import metrics, progress
from phalanx.sources.metrics import Metrics
from phalanx.sources.shapes import is_ordinary_line, shape_of

WORDS = ["epoch", "Step", "iter", "loss", "loss:", "acc", "it/s", "%|", "/100 [", "[==>", "training", "done", "0x", "lr", "nan", "samples/s",
         "time per iteration (ms)", "connected to", "peer ranks", "data", "learning rate", "|", "İ", "┃", "E+00", "=", "(", " ", "val", "mem", "rss"]  # fmt: skip
LINES = st.lists(st.sampled_from(WORDS) | st.integers(0, 10**6).map(str) | st.floats(0, 99).map("{:.3f}".format)).map(
    " ".join
)
EXPRESSIONS = [
    (f"{module.__name__}.{name}", value.pattern)
    for module in (progress, metrics)
    for name, value in vars(module).items()
    if hasattr(value, "pattern") and hasattr(value, "search")
] + [(f"courses: {kind}", pattern.pattern) for kind, _, _, pattern in metrics._KINDS]


def digits_told_apart(tokens: Any) -> bool:
    """Whether an expression asks for one digit and not for another."""
    for operator, argument in tokens:
        if operator in (sre.LITERAL, sre.NOT_LITERAL) and chr(argument).isdigit():
            return True
        if operator is sre.RANGE and not (argument == (48, 57) or argument[1] < 48 or argument[0] > 57):
            return True
        parts = argument if isinstance(argument, (list, tuple)) else ()
        nested = [part for part in parts if isinstance(part, (list, sre_parser.SubPattern))]
        branches = [
            branch for part in nested if isinstance(part, list) for branch in part if not isinstance(branch, tuple)
        ]
        if operator is sre.IN and digits_told_apart(argument):
            return True
        if any(digits_told_apart(part) for part in [*nested, *branches] if isinstance(part, sre_parser.SubPattern)):
            return True
    return False


def test_one_digit_is_told_from_another() -> None:
    assert all(digits_told_apart(sre_parser.parse(one)) for one in (r"a1", r"(?:b|c(?:2)?)", r"[1-5]", r"x{2}(?=3)"))
    assert not any(digits_told_apart(sre_parser.parse(one)) for one in (r"a\d{2}", r"[0-9a-f]+", r"(?:b|c)\w"))


@pytest.mark.parametrize(("name", "expression"), EXPRESSIONS)
def test_digits_are_all_alike(name: str, expression: str) -> None:
    """What is asked by shape may not depend on which digits a line holds; `0x` is looked after by itself."""
    assert not digits_told_apart(sre_parser.parse(expression.replace("0x[0-9a-f]{4}", ""))), name


@settings(max_examples=400, deadline=None)
@given(LINES)
@example("İİİİ epoch 3 step 14 loss 1.5")
@example("epoch 3 | 40/938 [00:01<00:20] loss=0.5")
@example("step 1x1234 is done")
@example("Epoch 12: accuracy 97.5 % at 12.5 samples/s")
def test_shapes_tell_what_lines_tell(line: str) -> None:
    shape = shape_of(line)
    position = progress.position_of(line)
    assert (shape.position_in(line) if shape.shows_progress else None) == position
    assert shape.shows_end == progress.shows_end(line)
    assert shape.shows_movement == progress.shows_movement(line)
    assert shape.shows_connection == progress.shows_connection(line)
    assert is_ordinary_line(line) == progress.is_ordinary(line)
    if position is not None:
        direct, by_shape = Metrics(), Metrics()
        direct.take(1, position, line)
        by_shape.take(1, position, line, shape.numbers)
        assert by_shape == direct
