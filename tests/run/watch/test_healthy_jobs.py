"""Healthy jobs that seem to stand still for a while, of the zoo and others: no alarm."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.needs import needs_torch
from tests.run.watch.job import running

pytestmark = [pytest.mark.job, pytest.mark.timeout(280), needs_torch]
FAULTS = Path(__file__).parents[3] / "faults"


@pytest.mark.parametrize(
    ("name", "size", "inside"),
    [
        ("torch-healthy-slow-evaluation", 3, True),
        ("torch-healthy-slow-evaluation", 3, False),
        ("torch-healthy-long-checkpoint", 2, True),
        ("torch-healthy-late-starter", 3, True),
    ],
)
def test_no_alarm(tmp_path: Path, name: str, size: int, inside: bool) -> None:
    script = (FAULTS / name / "train.py").read_text()
    with running(tmp_path, script, size, inside=inside) as job:
        assert job.until(lambda job: job.over, 200)
        assert set(job.codes.values()) == {0}, job.texts
        assert [seen for seen in job.observations if seen.kind in ("stall", "network", "death")] == []
        assert (job.attempt / "samples.jsonl").stat().st_size > 0


@contextmanager
def slow_server(per_second: int) -> Iterator[int]:
    """Sends to whoever connects, so many bytes a second; its port."""
    over = threading.Event()

    def serve(line: socket.socket) -> None:
        with line:
            while not over.wait(0.2):
                try:
                    line.sendall(bytes(per_second // 5))
                except OSError:
                    return

    def accept() -> None:
        while True:
            try:
                line, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(line,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            over.set()


@pytest.mark.parametrize(
    ("phase", "inside"),
    [
        *((phase, True) for phase in ("evaluation", "counting", "lock", "checkpoint", "child", "asleep", "rhythm")),
        *((phase, inside) for phase in ("download", "last") for inside in (True, False)),
    ],
)
def test_no_alarm_in_a_long_phase_of_one_rank(tmp_path: Path, phase: str, inside: bool) -> None:
    """With a fourth of the usual patience, so that ten seconds are as long as forty."""
    script = Path(__file__).with_name("phases.py").read_text()
    with slow_server(300_000) as port:
        arguments = (phase, "10", str(port))
        with running(tmp_path, script, 2, args=arguments, inside=inside, stall_after=2.0) as job:
            began = time.monotonic()
            assert job.until(lambda job: job.over, 100)
            assert time.monotonic() - began > 9
            assert set(job.codes.values()) == {0}, job.texts
            assert [
                seen for seen in job.observations if seen.kind in ("stall", "network", "death", "watch-failed")
            ] == []
