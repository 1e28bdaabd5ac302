"""The watch as the supervisor sees it: cheap, never raising, many ranks, and what it writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.run.observer import Setup
from phalanx.run.watch import Watch
from phalanx.run.watch import snapshot as snapshots
from phalanx.run.watch.stacks import GRANT, ProcessStacks
from phalanx.run.watch.stall import StallDetector


@pytest.fixture
def sleepers() -> Iterator[list[subprocess.Popen[bytes]]]:
    started = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(200)"]) for _ in range(4)]
    yield started
    for process in started:
        process.kill()
        process.wait()


def watch_on(tmp_path: Path, processes: list[subprocess.Popen[bytes]], copies: int = 1) -> Watch:
    """A watch on several ranks; `copies` ranks share a process, so that many can be had."""
    size = len(processes) * copies
    for rank in range(size):
        (tmp_path / f"rank{rank}").mkdir()
    watch = Watch(Setup(tmp_path, size, None, ("python",), inside=False))
    watch.started({rank: processes[rank % len(processes)].pid for rank in range(size)})
    return watch


@pytest.mark.parametrize(("copies", "most"), [(1, 0.006), (8, 0.012)])
def test_a_look_costs_little(tmp_path: Path, sleepers: list[subprocess.Popen[bytes]], copies: int, most: float) -> None:
    """Generous bounds: 4 ranks take about half a millisecond of processor time a tick."""
    watch = watch_on(tmp_path, sleepers, copies)
    watch.tick()
    costs = []
    for _ in range(20):
        before = time.thread_time()
        watch.tick()
        costs.append(time.thread_time() - before)
    watch.close()
    assert sorted(costs)[10] < most


def test_every_rank_is_looked_at_where_there_are_many(tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]) -> None:
    watch = watch_on(tmp_path, sleepers, 8)
    for _ in range(4):
        watch.tick()
    assert sorted(watch.status()) == list(range(32))
    assert all((status.memory or 0) > 1 << 20 for status in watch.status().values())
    watch.close()


def test_samples_are_lines_of_json(tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]) -> None:
    watch = watch_on(tmp_path, sleepers)
    watch.tick()
    watch.close()
    found = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert [sample["rank"] for sample in found] == [0, 1, 2, 3]
    assert {"state", "cpu_s", "memory", "threads", "children", "read", "written"} <= found[0].keys()


def test_a_snapshot_holds_the_stacks_of_every_rank(tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]) -> None:
    watch = watch_on(tmp_path, sleepers)
    assert watch.snapshot("a test") == 1
    assert watch.snapshot("another") == 2
    watch.close()
    for rank in range(4):
        text = (tmp_path / f"rank{rank}" / "stacks-2.txt").read_text()
        assert f"Process {sleepers[rank].pid}" in text
        assert "MainThread" in text


def test_where_py_spy_may_not_look_it_is_said_what_to_grant(
    tmp_path: Path, sleepers: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        snapshots, "take_stacks", lambda pids, **_: {pid: ProcessStacks(pid, error=GRANT) for pid in pids}
    )
    watch = watch_on(tmp_path, sleepers)
    watch.snapshot("a test")
    watch.close()
    assert "--cap-add=SYS_PTRACE" in (tmp_path / "rank0" / "stacks-1.txt").read_text()


def test_a_watch_that_breaks_says_so_once_and_rests(
    tmp_path: Path, sleepers: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watch_on(tmp_path, sleepers)

    def broken(*_: object, **__: object) -> None:
        raise ValueError("a kernel that prints something new")

    monkeypatch.setattr("phalanx.run.watch.watch.look_at", broken)
    (seen,) = watch.tick()
    assert seen.kind == "watch-failed"
    assert "something new" in seen.text
    assert watch.tick() == ()
    watch.close()


def test_ranks_that_are_gone_and_folders_that_are_gone(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    watch = Watch(Setup(tmp_path / "nowhere", 1, None, ("python",), inside=True))
    watch.started({0: process.pid})
    assert list(watch.tick()) == []
    assert watch.snapshot("a test") == 1
    assert watch.ended(0, 0) == {}
    assert watch.status() == {}
    watch.heard(7, b"a rank that nobody knows")
    watch.close()


def test_work_of_grandchildren_counts_as_the_ranks(tmp_path: Path) -> None:
    """As of a compiler, which a helper process started, which a thread started: no main thread knows it."""
    worker = "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"
    helper = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {worker!r}])"
    start = f"subprocess.run([sys.executable, '-c', {helper!r}])"
    rank = f"import subprocess, sys, threading\nthreading.Thread(target=lambda: {start}).start()"
    process = subprocess.Popen([sys.executable, "-c", rank], start_new_session=True)
    try:
        watch = watch_on(tmp_path, [process])
        watch._detector = StallDetector(floor=1.0, start=2.0)
        end = time.monotonic() + 60
        while time.monotonic() < end and (0 not in watch._looks or watch._looks[0].wanted < 0.5):
            watch.tick()
            time.sleep(0.2)
        look = watch._looks[0]
        assert len(look.children) == 2
        assert look.signs.demand > look.demand + 0.4
        assert watch._detector.work_of(0)
        watch.close()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
