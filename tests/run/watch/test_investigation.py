"""The closer look: who gets nowhere, who only takes long, and who pauses by its own wish."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest

from phalanx.model import Frame
from phalanx.run.watch import investigation
from phalanx.run.watch.investigation import StallInvestigation, pauses_by_itself
from phalanx.run.watch.rank_position import Doing, RankPosition
from phalanx.run.watch.spinning import looks_at, spins
from phalanx.run.watch.stacks import ProcessStacks, Thread
from phalanx.run.watch.stall import Notice, Verdict

OTHERS = "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py"


@contextmanager
def process(folder: Path, code: str) -> Iterator[int]:
    (folder / "train.py").write_text(code)
    running = subprocess.Popen([sys.executable, str(folder / "train.py")], stdout=subprocess.PIPE)
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == b"begun\n"
        time.sleep(0.2)
        yield running.pid
    finally:
        running.kill()
        running.wait()


LOOP = "def work(ready):\n    print('begun', flush=True)\n    {}\nwork([])\n"


@pytest.mark.parametrize(
    ("loop", "early"),
    [
        (
            "while not ready:\n        done = list(range(10**4)) == ready\n        done = tuple(range(10**4)) == ready",
            True,
        ),
        # counting words takes long, and looks the same from outside
        (
            "total = 0\n    while not ready:\n        total += len(list(range(10**4)))\n        total += len(tuple(range(10**4)))",
            False,
        ),
        # so does one call of native code
        ("while not ready: sum(range(10**9))", False),
        # a loop that only asks needs no second line
        ("while not ready: pass", True),
    ],
)
def test_a_loop_that_changes_nothing_is_told_from_one_that_counts(tmp_path: Path, loop: str, early: bool) -> None:
    with process(tmp_path, LOOP.format(loop)) as pid:
        seen = looks_at([pid], values=True)
        assert len(seen[pid]) >= 4
        assert spins(seen) is early
        assert spins(seen, is_long=True)


def test_the_variables_of_a_module_are_not_known_and_do_not_accuse(tmp_path: Path) -> None:
    with process(tmp_path, "print('begun', flush=True)\nwhile True: pass\n") as pid:
        seen = looks_at([pid], values=True)
        assert not spins(seen)
        assert spins(seen, is_long=True)


def thread(*frames: Frame) -> Thread:
    return Thread("MainThread", active=True, frames=frames, values=tuple({} for _ in frames))


def test_native_code_that_keeps_the_lock_may_be_a_large_pickle() -> None:
    looks = [thread(Frame("/home/user/train.py", 9, "save"))] * 6
    assert not spins({7: looks}, frozenset({7}))
    assert spins({7: looks}, frozenset({7}), is_long=True)


def test_work_deep_in_a_framework_is_never_called_a_circle() -> None:
    looks = [thread(Frame("/home/user/train.py", 9, "evaluate"), Frame(OTHERS, 134, "forward"))] * 6
    assert not spins({7: looks}, is_long=True)


def asleep(rank: int) -> RankPosition:
    return RankPosition(rank, Doing.ELSEWHERE, "", Frame("train.py", 12, "poll", "time.sleep(60)"), sleeps=True)


def test_ranks_that_all_sleep_or_that_finish_later_are_left_alone() -> None:
    ended = RankPosition(1, Doing.ENDED, code=0)
    uploading = RankPosition(0, Doing.ELSEWHERE, "", Frame("train.py", 40, "upload"))
    assert pauses_by_itself({0: asleep(0), 1: asleep(1)})
    assert pauses_by_itself({0: uploading, 1: ended})
    assert not pauses_by_itself({0: uploading, 1: asleep(1)})
    assert not pauses_by_itself({0: uploading, 1: RankPosition(1, Doing.ENDED, code=1)})
    waiting = RankPosition(0, Doing.COLLECTIVE, "all_reduce", Frame("train.py", 40, "train"))
    assert not pauses_by_itself({0: waiting, 1: ended})
    assert not pauses_by_itself({0: waiting, 1: asleep(1)})


def asking(library: str, function: str) -> list[Thread]:
    """Looks at a loop that asks a library something; its variables stay as they are."""
    own = Frame("/home/me/train.py", 25, "wait_for_file")
    below = Frame(library, 19, function)
    told = {"path": "'/data/ready'"}
    return [
        Thread("MainThread", True, (own, below), values=(told, {})),
        Thread("MainThread", True, (own,), values=(told,)),
    ] * 3


def test_who_asks_for_a_file_again_and_again_gets_nowhere() -> None:
    looks = asking("<frozen genericpath>", "exists")
    assert spins({7: looks})
    assert not spins({7: looks}, parents=frozenset({7}), is_long=True)  # its child may be about to make it
    assert not spins({7: asking("/usr/lib/python3.11/zipfile.py", "read")}, is_long=True)


@pytest.mark.parametrize(("quiet", "working", "told"), [(11.0, (), True), (9.0, (), True), (11.0, (1,), False)])
def test_a_server_that_idles_is_told_before_the_job_has_a_rhythm(
    monkeypatch: pytest.MonkeyPatch, quiet: float, working: tuple[int, ...], told: bool
) -> None:
    idle = Thread("MainThread", False, (Frame("/home/me/train.py", 10, "preload"),))
    waits = Thread("MainThread", False, (Frame("/home/me/train.py", 18, "<module>"),))
    stacks = {7: ProcessStacks(7, (waits,)), 8: ProcessStacks(8, (idle,))}
    monkeypatch.setattr(investigation, "take_stacks", lambda pids, **_: stacks)
    monkeypatch.setattr(investigation, "looks_at", lambda pids: {pid: [idle, idle] for pid in pids})
    notice = Notice(Verdict.APART, quiet, 24.0, working)
    one = StallInvestigation(notice, 2, Mock(), {0: 7, 1: 8}, {}, {}, roles={0: "chief 0", 1: "ps 0"})
    began = time.monotonic()
    assert one._a_server_idles() is told
    assert quiet + time.monotonic() - began >= 10.0  # a task that comes a little late is no idle one
