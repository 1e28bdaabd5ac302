"""Short cuts of the survey give what the long way gives."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phalanx.diagnosis.world import SIGNS
from phalanx.sources import dialects
from phalanx.sources.dialects import Dialect, rank_inside, sniff
from phalanx.sources.signs import SignSet
from phalanx.sources.survey import FileSurvey, cleaned_lines, survey_sample
from phalanx.sources.text import clean

PARTS = ["rank", "[Rank", "RANK=", "global_rank=", '{"rank": ', "worker", "process", "proc", "trainer", " ", "[", "]", ":", "|", "step", "3", "12", ",", "(", ")", "-", "é", "ı"]  # fmt: skip
LINES = st.lists(st.sampled_from(PARTS), max_size=14).map("".join)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"plain  ", b"tab\t", b"\x1b[31mred\x1b[0m", b"a" * 3000])))
@example([b"step 1 loss 2.0", b"step 2 loss 1.5  "])
def test_lines_are_cleaned_alike_together_and_one_by_one(lines: list[bytes]) -> None:
    sample = b"\n".join(lines)
    assert cleaned_lines(sample) == [clean(raw[:2048]) for raw in sample.split(b"\n")]


@settings(max_examples=300, deadline=None)
@given(LINES)
@example("step 3 [rank 12]")
@example('rank: 3 | step 1, "rank": 12')
def test_the_rank_inside_a_line(line: str) -> None:
    found, expected = rank_inside(line, line.lower()), dialects._INSIDE.search(line)
    assert (found and found.span()) == (expected and expected.span())
    named = [[value for value in match.groups() if value is not None] for match in (found, expected) if match]
    assert not named or named[0] == named[1]


@pytest.mark.parametrize("labelled", [0, 5, 6, 7, 10])
def test_a_weak_prefix_is_believed_where_most_lines_have_it(labelled: int) -> None:
    lines = [f"{number % 2}: loading" for number in range(labelled)] + ["loading"] * (10 - labelled)
    for order in (lines, lines[::-1]):
        assert (sniff(order, None).read("1: x")[0].rank == 1) is (labelled >= 6)


def test_bars_that_are_drawn_over_and_over() -> None:
    survey = FileSurvey("rank0.log", 0)
    sample = b"start\nepoch 1 step 1 loss 3.0\repoch 1 step 2 loss 2.0\repoch 1 step 3 loss 1.0\ntraining done\n"
    survey_sample(survey, sample, 1, Dialect(file_rank=0), SignSet(SIGNS))
    entry = survey.ranks[0]
    assert (entry.lines, entry.last_line, entry.finished, entry.last_progress) == (5, 3, 3, 2)
    assert entry.position == (1, 3)
    assert entry.metrics is not None
    assert [reading.printed for reading in entry.metrics.of("loss")] == ["3.0", "2.0", "1.0"]
