"""Rounds: nobody is in two pairs at once, all pairs for few hosts, few rounds for many."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.preflight.network.rounds import FEW, doubling, rounds, tournament, without_collisions


def apart(pairs: list[tuple[int, int]]) -> bool:
    numbers = [number for pair in pairs for number in pair]
    return len(numbers) == len(set(numbers))


@settings(deadline=None)
@given(st.integers(2, 40))
def test_a_tournament_has_every_pair_once(count: int) -> None:
    played = list(tournament(count))
    assert all(map(apart, played))
    assert sorted(tuple(sorted(pair)) for pairs in played for pair in pairs) == [
        (one, other) for one in range(count) for other in range(one + 1, count)
    ]


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 1100))
def test_doubling_takes_few_rounds_and_leaves_nobody_out(count: int) -> None:
    played = list(doubling(count))
    assert all(map(apart, played))
    assert len(played) <= 2 * math.ceil(math.log2(count))
    assert {number for pairs in played for pair in pairs for number in pair} == set(range(count))


def test_few_hosts_are_measured_in_all_pairs() -> None:
    assert len({pair for pairs in rounds(FEW) for pair in pairs}) == FEW * (FEW - 1) // 2
    assert len(rounds(1000)) <= 20


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(10, 19)), max_size=30, unique=True))
def test_given_pairs_are_spread_without_collisions(pairs: list[tuple[int, int]]) -> None:
    played = without_collisions(pairs)
    assert all(map(apart, played))
    assert sorted(pair for one in played for pair in one) == sorted(pairs)
