"""Cohen's kappa: known values, and intervals that hold what resampling finds."""

import random

import pytest

from phalanx.study.reproduce.kappa import agree


def pairs_of(table: dict[tuple[str, str], int]) -> list[tuple[str, str]]:
    return [pair for pair, count in table.items() for _ in range(count)]


def test_the_textbook_case() -> None:
    # 50 grants, two readers: 20 both yes, 15 both no, 5 and 10 apart. Observed 0.7, by chance 0.5.
    result = agree(pairs_of({("y", "y"): 20, ("n", "n"): 15, ("y", "n"): 5, ("n", "y"): 10}))
    assert result is not None
    assert (result.pairs, result.observed) == (50, 0.7)
    assert result.kappa == pytest.approx(0.4)
    assert result.low < 0.4 < result.high


def test_the_interval_is_that_of_resampling() -> None:
    table = {("a", "a"): 60, ("b", "b"): 20, ("c", "c"): 25, ("a", "b"): 9, ("b", "a"): 3, ("c", "a"): 6, ("b", "c"): 7}
    pairs = pairs_of(table)
    result = agree(pairs)
    assert result is not None
    dice = random.Random(7)
    drawn = sorted(again.kappa for _ in range(2000) if (again := agree(dice.choices(pairs, k=len(pairs)))) is not None)
    assert result.low == pytest.approx(drawn[50], abs=0.02)
    assert result.high == pytest.approx(drawn[1949], abs=0.02)


def test_agreement_by_chance_is_zero_and_opposition_is_negative() -> None:
    chance = agree(pairs_of({("y", "y"): 25, ("n", "n"): 25, ("y", "n"): 25, ("n", "y"): 25}))
    opposed = agree(pairs_of({("y", "n"): 10, ("n", "y"): 10}))
    assert chance is not None
    assert opposed is not None
    assert chance.kappa == pytest.approx(0)
    assert opposed.kappa == pytest.approx(-1)
    assert opposed.low >= -1


def test_full_agreement_does_not_claim_certainty() -> None:
    result = agree(pairs_of({("y", "y"): 50, ("n", "n"): 50}))
    assert result is not None
    assert result.kappa == result.high == 1
    assert result.low == pytest.approx(0.94)


def test_one_label_only_tells_nothing() -> None:
    result = agree([("y", "y")] * 10)
    assert result is not None
    assert (result.kappa, result.low) == (1, 0)
    assert agree([]) is None
