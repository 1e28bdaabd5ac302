"""Sets of ranks as people write them."""

from __future__ import annotations

import pytest

from phalanx.model.ranks import name_ranks, ranges


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([], ""),
        ([2], "rank 2"),
        ([3, 0, 1], "ranks 0, 1, 3"),
        (range(256), "ranks 0-255"),
        ([0, 1, 2, 3, 9], "ranks 0-3, 9"),
        (range(0, 40, 2), "ranks 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, … (20 in all)"),
    ],
)
def test_name_ranks(ranks: list[int], expected: str) -> None:
    assert name_ranks(ranks) == expected


def test_ranges() -> None:
    assert ranges([5, 0, 1, 2]) == "0-2,5"
    assert ranges([]) == ""
