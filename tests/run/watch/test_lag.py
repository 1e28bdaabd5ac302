"""Who is behind, and who only was looked at sooner."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from phalanx.run.watch.heartbeat import GroupCounts, Heartbeat
from phalanx.run.watch.lag import Lag
from phalanx.run.watch.look import RankLook, look_at
from phalanx.run.watch.output_progress import OutputProgress


@pytest.fixture
def look() -> RankLook:
    found = look_at(os.getpid(), None, OutputProgress(), None, 0.0)
    assert found is not None
    return found


def beaten(look: RankLook, at: float, **groups: int) -> RankLook:
    """A look whose heartbeat is of this moment."""
    counts = {name: GroupCounts(count, -1, count - 1) for name, count in groups.items()}
    return replace(look, time=at, beat=Heartbeat(1, 1, at, 3, 0, 0, 0, groups=counts))


def test_ranks_in_step_are_not_behind_because_their_hearts_beat_at_other_moments(look: RankLook) -> None:
    lag = Lag()
    for tick in range(20):
        for rank in range(3):
            at = tick * 0.5 + rank * 0.1
            lag.note(rank, beaten(look, at, g=int(at * 100)), None)
    assert [lag.behind(rank) for rank in range(3)] == [0, 0, 0]


def test_the_rank_that_the_others_wait_for_is_behind(look: RankLook) -> None:
    lag = Lag()
    for tick in range(20):
        for rank in range(3):
            lag.note(rank, beaten(look, tick * 0.5 + rank * 0.1, g=40 - (rank == 1)), None)
    assert [lag.behind(rank) for rank in range(3)] == [0, 1, 0]
    assert not lag.counts_steps(1)


def test_a_rank_that_has_left_its_groups_or_is_in_others_cannot_be_compared(look: RankLook) -> None:
    lag = Lag()
    for tick in range(20):
        lag.note(0, beaten(look, tick * 0.5, a=500), None)
        lag.note(1, beaten(look, tick * 0.5 + 0.1, b=3), None)
        lag.note(2, beaten(look, tick * 0.5 + 0.2), None)
    assert [lag.behind(rank) for rank in range(3)] == [0, 0, 0]


def test_steps_that_are_told_count_where_nothing_else_does(look: RankLook) -> None:
    lag = Lag()
    for tick in range(20):
        for rank in range(3):
            lag.note(rank, replace(look, time=tick * 0.5), tick - 5 * (rank == 2))
    assert [lag.behind(rank) for rank in range(3)] == [0, 0, 5]
    assert lag.counts_steps(2)
    lag.forget(2)
    assert lag.behind(2) == 0
