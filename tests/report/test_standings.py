"""Where the ranks stand, folded."""

from __future__ import annotations

from phalanx.model.trace import CallState
from phalanx.report.standings import absent_ranks, find_standings, in_words

from ..made_traces import made


def test_the_odd_rank_comes_first_and_crowds_are_folded() -> None:
    standings = find_standings(made("host-stall"))
    assert standings[0].ranks == (12,)
    assert standings[0].state is CallState.COMPLETED
    assert standings[0].outstanding == 0
    assert sorted(rank for one in standings for rank in one.ranks) == list(range(16))
    assert standings[-1].ranks == tuple(range(12)), "twelve ranks wait for a message of the next stage"
    assert standings[-1].op == "recv"


def test_a_dead_rank_is_told_by_the_groups() -> None:
    assert absent_ranks(made("dead")) == (12,)
    assert absent_ranks(made("none")) == ()


def test_ranks_in_words() -> None:
    assert in_words([3, 1, 2, 7]) == "1–3, 7"
    assert in_words([0, 1, 5]) == "0, 1, 5"
    assert in_words([]) == ""
    assert in_words(range(0, 40, 2), most=3) == "0, 2, 4, … (20 in all)"
