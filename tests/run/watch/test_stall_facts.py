"""What the watch concluded, as facts."""

from __future__ import annotations

import pytest

from phalanx.model import Frame
from phalanx.run.watch.rank_position import Doing, RankPosition
from phalanx.run.watch.stall_verdict import judge_stall


def waits(rank: int, line: int = 88) -> RankPosition:
    return RankPosition(rank, Doing.COLLECTIVE, "all_reduce", Frame("train.py", line, "train"))


ELSEWHERE = RankPosition(2, Doing.ELSEWHERE, frame=Frame("train.py", 131, "evaluate"), condition="if rank == 2")


def test_who_waits_where_and_what_the_accused_does() -> None:
    fact = judge_stall({0: waits(0), 1: waits(1), 2: ELSEWHERE}, {}, 3).fact(8.4)
    assert (fact.id, fact.ranks) == ("stall.waits-for-rank", (2,))
    assert fact.fields["waiting"] == (0, 1)
    assert fact.fields["call"] == "all_reduce at train.py:88"
    assert fact.fields["own"] == "is in evaluate() at train.py:131, under `if rank == 2`"
    assert (fact.fields["seconds"], fact.fields["reason"]) == (8, "elsewhere")
    assert "undecided" not in fact.fields
    assert fact.fields["busy_in"] == "evaluate() at train.py:131"
    assert fact.fields["condition"] == "if rank == 2"


def test_an_accused_rank_in_another_collective_is_not_busy_in_its_own_code() -> None:
    fact = judge_stall({0: waits(0), 1: waits(1), 2: waits(2, 99)}, {}, 3).fact(8.0)
    assert fact.ranks == (2,)
    assert "busy_in" not in fact.fields


def test_a_tie_is_undecided() -> None:
    fact = judge_stall({rank: waits(rank, 88 + rank // 2) for rank in range(4)}, {}, 4).fact(8.0)
    assert (fact.id, fact.ranks) == ("stall.waits-for-rank", ())
    assert fact.fields["undecided"] == fact.fields["positions"]


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        (RankPosition(2, Doing.DATA, frame=Frame("train.py", 9, "main")), "stall.waits-for-data"),
        (RankPosition(2, Doing.STOPPED, pid=42), "stall.stopped"),
        (RankPosition(2, Doing.CONNECT, "init_process_group"), "stall.waits-for-peers"),
    ],
)
def test_each_kind_has_its_fact(odd: RankPosition, expected: str) -> None:
    assert judge_stall({0: waits(0), 1: waits(1), 2: odd}, {}, 3).fact(8.0).id == expected


def test_ranks_that_do_not_end() -> None:
    left = RankPosition(2, Doing.ELSEWHERE, frame=Frame("train.py", 40, "drain"), leaving=True)
    ended = {rank: RankPosition(rank, Doing.ENDED, code=0) for rank in (0, 1)}
    fact = judge_stall({**ended, 2: left}, {}, 3).fact(25.0)
    assert (fact.id, fact.ranks) == ("stall.does-not-end", (2,))
