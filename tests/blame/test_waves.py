"""Who failed first, by the number of the call and then by the clock."""

from __future__ import annotations

from phalanx.blame import GroupCall
from phalanx.blame.waves import first_of
from tests.blame.tables import dead, table


def test_the_lower_number_within_one_group_comes_first() -> None:
    judged = table(dead(0, 1, at=5.0, calls=(GroupCall("0", 40),)), dead(1, 1, at=1.0, calls=(GroupCall("0", 41),)))
    assert first_of({0, 1}, judged) == {0}


def test_numbers_of_different_groups_are_not_compared() -> None:
    judged = table(dead(0, 1, at=5.0, calls=(GroupCall("tp", 40),)), dead(1, 1, at=1.0, calls=(GroupCall("dp", 41),)))
    assert first_of({0, 1}, judged) == {1}


def test_times_within_two_seconds_are_one_wave() -> None:
    judged = table(dead(0, 1, at=10.0), dead(1, 1, at=11.0), dead(2, 1, at=12.5))
    assert first_of({0, 1}, judged) == {0, 1}
    assert first_of({0, 1, 2}, judged) == {0, 1}


def test_without_a_number_or_a_time_nobody_is_first() -> None:
    assert first_of({0, 1}, table(dead(0, 1), dead(1, 1, at=3.0))) == {0, 1}
