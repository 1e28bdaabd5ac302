"""The engine asks the strategies in one fixed order, and accuses nobody where none applies."""

from __future__ import annotations

from phalanx.blame import NOBODY, About, accuse
from phalanx.blame.engine import all_strategies
from tests.blame.tables import dead, table, waiting


def test_strategies_are_found_in_an_explicit_order() -> None:
    found = all_strategies()
    assert [one.order for one in found] == sorted({one.order for one in found})
    assert [one.name for one in found if one.order <= 20] == ["aside", "named", "stopped"]
    assert all(one.about for one in found)


def test_the_first_strategy_that_accuses_decides_and_says_why() -> None:
    judged = table(waiting(0, 7), waiting(1, 7), dead(2, -9), waiting(3, 6))
    found = accuse(judged)
    assert (found.ranks, found.strategy) == ({2}, "died-first")
    assert "-9" in found.because
    assert accuse(judged, without=frozenset({"died-first"})).ranks == {3}


def test_nobody_is_accused_where_nothing_stands_out() -> None:
    assert accuse(table(waiting(0, 7), waiting(1, 7))) == NOBODY
    assert accuse(table(waiting(0), size=4)) == NOBODY


def test_a_fault_of_nobody_is_judged_by_no_strategy() -> None:
    assert accuse(table(waiting(0), dead(1, -9), about=About.NOBODY)) == NOBODY
