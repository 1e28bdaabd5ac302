"""What people set between fences: told from their words, and read where they point at it."""

from __future__ import annotations

import pytest

from phalanx.sources.fences import names_in, outside_and_inside, points_below
from phalanx.sources.people import words_of_person


def read(text: str) -> list[tuple[str, bool]]:
    return list(outside_and_inside(text.splitlines(), by_ticks=False))


def test_code_within_a_line_does_not_open_a_fence() -> None:
    assert read("Stuck in\n```dist.barrier()```\nWhy?") == [
        ("Stuck in", False),
        (" dist.barrier() ", False),
        ("Why?", False),
    ]


def test_words_behind_the_end_of_a_fence_are_the_persons() -> None:
    assert read("I run\n```\npython train.py```, and it fails.\nHelp") == [
        ("I run", False),
        (", and it fails.", False),
        ("Help", False),
    ]


def test_an_open_fence_lasts_to_the_end() -> None:
    assert read("See\n~~~\nrank 0\nrank 1") == [("See", False), ("rank 0", True), ("rank 1", True)]


@pytest.mark.parametrize(
    ("sentence", "points"),
    [
        ("It gets stuck in this line", True),
        ("The program is hanging on:", True),
        ("The error comes from this line", True),
        ("I get the following error:", False),  # a traceback comes, not a place
        ("My job hangs. The configuration:", False),
    ],
)
def test_only_a_sentence_about_a_place_points_below(sentence: str, points: bool) -> None:
    assert points_below(sentence) is points


def test_of_a_long_output_the_last_line_tells_where_it_stood() -> None:
    log = [f"loading shard {number}" for number in range(9)]
    assert names_in([*log, "Initializing distributed: GLOBAL_RANK: 0"]) == "Initializing distributed GLOBAL_RANK"


def test_the_place_becomes_a_part_of_the_sentence() -> None:
    report = (
        "# It does not start\n\nMy script gets stuck in this line\n```\ndist.init_process_group('nccl')\n```\nThanks!\n"
    )
    words = words_of_person(report)
    assert words is not None
    assert "stuck in this line dist init_process_group nccl" in words
