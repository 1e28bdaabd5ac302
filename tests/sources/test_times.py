"""Times in the usual forms."""

from __future__ import annotations

import pytest

from phalanx.sources.times import time_of

NOON = 1704196800.0  # 2024-01-02 12:00:00 UTC


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2024-01-02 12:00:00,500 INFO x", NOON + 0.5),
        ("[2024-01-02T12:00:00.25Z] x", NOON + 0.25),
        ("2024-01-02T13:00:00+01:00 x", NOON),
        ("2024-01-02T07:00:00-0500 x", NOON),
        ("  time      : 2024-01-02_12:00:00", NOON),
        ("2024/01/02 12:00:00 x", NOON),
        ("I0000 00:00:1704196800.5 812 x.cc:1] y", NOON + 0.5),
        ("[rank0] 2024-13-45 12:00:00 impossible", None),
        ("step 3 loss 0.1", None),
        ("", None),
    ],
)
def test_time(line: str, expected: float | None) -> None:
    assert time_of(line) == expected


def test_forms_without_a_year_compare_with_each_other() -> None:
    first, second = time_of("[rank1]:[E0102 12:00:00.100000 x.cpp:1] a"), time_of("E0102 12:00:00.200000 x.cpp:1] b")
    assert first is not None
    assert second is not None
    assert second - first == pytest.approx(0.1)
    assert time_of("Jan  2 12:00:00 node0 kernel: oom") == time_of("I0102 12:00:00 x")
