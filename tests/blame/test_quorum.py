"""A tie is neither a majority nor a minority."""

from __future__ import annotations

import pytest

from phalanx.blame.quorum import is_majority, is_minority, odd_ones


@pytest.mark.parametrize(
    ("count", "size", "alone", "directed"),
    [(0, 4, False, False), (1, 4, True, True), (2, 4, False, False), (3, 4, False, False), (1, 3, True, True), (1, 2, False, True), (2, 2, False, False)],
)  # fmt: skip
def test_who_is_few_enough_to_be_accused(count: int, size: int, alone: bool, directed: bool) -> None:
    part, whole = range(count), range(size)
    assert is_minority(part, whole) is alone
    assert is_minority(part, whole, directed=True) is directed


def test_the_odd_ones_are_those_without_the_value_of_the_majority() -> None:
    assert odd_ones({0: "a", 1: "a", 2: "b", 3: "a"}, range(4)) == {2}
    assert odd_ones({0: "a", 1: "b"}, range(2)) == frozenset()
    assert odd_ones({0: "a", 1: "a", 2: "b", 3: "b"}, range(4)) == frozenset()


def test_a_value_that_is_common_among_the_known_only_is_no_majority() -> None:
    assert odd_ones({0: "a", 1: "a", 2: "b"}, range(6)) == frozenset()
    assert odd_ones({}, range(4)) == frozenset()


def test_half_is_no_majority() -> None:
    assert not is_majority(range(2), range(4))
    assert is_majority(range(3), range(4))
