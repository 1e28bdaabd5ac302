"""What looks say of a job, without anybody being accused."""

from __future__ import annotations

from dataclasses import replace

from phalanx.attaching.looks import JobMotion, RankMotion
from phalanx.attaching.state import State, describe, state_of
from phalanx.model import Frame
from phalanx.run.watch.rank_position import Doing, RankPosition
from phalanx.run.watch.stacks import ProcessStacks, Thread


def rank(number: int, doing: Doing, call: str = "", **changes: object) -> RankMotion:
    frame = Frame("/a/train.py", 10 + number, "work")
    stacks = ProcessStacks(100 + number, (Thread("MainThread", True, (frame,)),))
    made = RankMotion(100 + number, RankPosition(number, doing, call, frame), True, 0.0, 0.0, 0.0, False, (), stacks)
    return replace(made, **changes)  # type: ignore[arg-type]


def job(*ranks: RankMotion) -> JobMotion:
    return JobMotion({one.position.rank: one for one in ranks}, 3.0, None)


def test_ranks_that_wait_for_one_that_does_nothing_hang() -> None:
    motion = job(rank(0, Doing.COLLECTIVE, "all_reduce"), rank(1, Doing.ELSEWHERE))
    assert state_of(motion).state is State.HUNG


def test_waiting_for_a_rank_that_writes_is_no_hang() -> None:
    motion = job(rank(0, Doing.ELSEWHERE, io=3e8), rank(1, Doing.COLLECTIVE, "barrier"))
    found = state_of(motion)
    assert found.state is State.BUSY
    assert describe(motion, found) == (
        "It is not hung as far as can be seen: rank 0 works in work() at train.py:10 (286 MB/s of files), "
        "while rank 1 waits in barrier."
    )


def test_a_stack_that_changes_is_motion() -> None:
    motion = job(rank(0, Doing.COLLECTIVE, "all_reduce", stands=False), rank(1, Doing.COLLECTIVE, "all_reduce"))
    assert state_of(motion).state is State.MOVING


def test_a_stopped_rank_comes_first() -> None:
    motion = job(rank(0, Doing.COLLECTIVE, "all_reduce"), rank(1, Doing.ELSEWHERE, stopped=True))
    assert state_of(motion).stopped == (1,)


def test_nobody_waits() -> None:
    motion = job(rank(0, Doing.ELSEWHERE), rank(1, Doing.ELSEWHERE))
    found = state_of(motion)
    assert found.state is State.COMPUTING
    assert describe(motion, found) == "No rank waits for another: ranks 0, 1 do nothing."


def test_without_stacks_nothing_is_said_of_the_job() -> None:
    blind = rank(0, Doing.UNKNOWN, stacks=ProcessStacks(100, error="not permitted"))
    motion = job(blind)
    found = state_of(motion)
    assert found.state is State.UNSEEN
    assert "not permitted" in describe(motion, found)
