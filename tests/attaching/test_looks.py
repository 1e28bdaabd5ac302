"""What tells a rank whose data come slowly from one whose data do not come."""

from __future__ import annotations

import pytest

from phalanx.attaching.looks import JobMotion, RankMotion, with_moving_data
from phalanx.attaching.state import State, state_of
from phalanx.model import Frame
from phalanx.run.watch.rank_position import Doing, RankPosition
from phalanx.run.watch.stacks import ProcessStacks, Thread

WAITS = Frame("/a/train.py", 52, "<module>")
SAMPLES = Frame("/a/train.py", 25, "samples")
SCRIPT_OPS = Frame("/usr/lib/python3/site-packages/tensorflow/python/ops/script_ops.py", 150, "__call__")


def made_in_a_thread(number: str) -> tuple[ProcessStacks, tuple[ProcessStacks, ...]]:
    maker = Thread("Thread-7", False, (SCRIPT_OPS, SAMPLES), values=({}, {"number": number}))
    return ProcessStacks(101, (Thread("MainThread", False, (WAITS,)), maker)), ()


def made_in_a_worker(number: str) -> tuple[ProcessStacks, tuple[ProcessStacks, ...]]:
    worker = ProcessStacks(201, (Thread("MainThread", False, (SAMPLES,), values=({"number": number},)),))
    return ProcessStacks(101, (Thread("MainThread", False, (WAITS,)),)), (worker,)


def job(stacks: ProcessStacks, workers: tuple[ProcessStacks, ...]) -> JobMotion:
    data = RankMotion(101, RankPosition(1, Doing.DATA, "", WAITS), True, 0, 0, 0, False, (), stacks, workers)
    peer = RankMotion(100, RankPosition(0, Doing.COLLECTIVE, "reduce", WAITS), True, 0, 0, 0, False, (), stacks)
    return JobMotion({0: peer, 1: data}, 3.0, None)


@pytest.mark.parametrize("made", [made_in_a_thread, made_in_a_worker])
def test_data_that_come_slowly_are_no_hang(made: object) -> None:
    assert callable(made)
    before, after = job(*made("47")), job(*made("52"))
    assert state_of(after).state is State.HUNG, "one look cannot tell"
    assert state_of(with_moving_data(after, before)).state is State.MOVING


@pytest.mark.parametrize("made", [made_in_a_thread, made_in_a_worker])
def test_data_that_do_not_come_are_a_hang(made: object) -> None:
    assert callable(made)
    assert state_of(with_moving_data(job(*made("47")), job(*made("47")))).state is State.HUNG
