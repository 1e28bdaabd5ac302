"""Processor time of threads that only ask is no work; that of threads that compute is."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from phalanx.run.watch.look import look_at
from phalanx.run.watch.output_progress import OutputProgress
from phalanx.run.watch.threads import ThreadSample, sample_threads, work_between

MAIN = 10
POLLING = """
import os, threading, time
def ask():
    while True:
        os.getppid()
        time.sleep(0.0002)
for _ in range(3):
    threading.Thread(target=ask, daemon=True).start()
print("ready", flush=True)
time.sleep(60)
"""
WORKING = """
import threading, time
def work():
    while True:
        sum(range(10000))
threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
time.sleep(60)
"""


@contextmanager
def script(text: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


def _work_of(pid: int, seconds: float = 2.0) -> float:
    before = look_at(pid, None, OutputProgress(), None, time.monotonic(), closely=True)
    time.sleep(seconds)
    now = look_at(pid, None, OutputProgress(), before, time.monotonic(), closely=True)
    assert before is not None
    assert now is not None
    return now.signs.cpu - before.signs.cpu


def test_a_rank_whose_threads_only_poll_does_no_work() -> None:
    with script(POLLING) as pid:
        before = sum(thread.runs for thread in sample_threads(pid).values())
        assert _work_of(pid) < 0.05
        assert sum(thread.runs for thread in sample_threads(pid).values()) > before + 200  # and they did poll


def test_a_rank_whose_pool_computes_while_the_main_thread_waits_works() -> None:
    with script(WORKING) as pid:
        assert _work_of(pid) > 0.2  # also beside other tests


def test_the_main_thread_counts_however_short_its_runs() -> None:
    now = {MAIN: ThreadSample(0.3, 30_000)}
    assert work_between(MAIN, {MAIN: ThreadSample(0.0, 0)}, now, 0.9, 1.0) == pytest.approx(0.3)


def test_small_pieces_count_where_threads_do_many_of_them_together() -> None:
    before = {number: ThreadSample(0.0, 0) for number in range(MAIN, MAIN + 9)}
    busy = {number: ThreadSample(0.1, 1000) for number in range(MAIN + 1, MAIN + 9)} | {MAIN: ThreadSample(0.0, 0)}
    few = busy | {number: ThreadSample(0.0, 0) for number in range(MAIN + 4, MAIN + 9)}
    assert work_between(MAIN, before, busy, 0.8, 1.0) == pytest.approx(0.8)
    assert work_between(MAIN, before, few, 0.8, 1.0) == 0.0


def test_the_whole_process_counts_where_a_thread_has_ended_or_none_is_known() -> None:
    now = {MAIN: ThreadSample(0.1, 5)}
    assert work_between(MAIN, {}, now, 0.7, 1.0) == 0.7
    assert work_between(MAIN, {**now, MAIN + 1: ThreadSample(0.0, 1)}, now, 0.7, 1.0) == 0.7
