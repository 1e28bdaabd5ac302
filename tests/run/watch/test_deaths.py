"""Ranks that die by signals, for real: what the watch knows of why."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from phalanx.run.watch.control_groups import read_group
from phalanx.run.watch.deaths import DeathWatch
from phalanx.run.watch.kernel_log import KernelLog
from tests.run.watch.job import Job, running

MEMORY = Path("/sys/fs/cgroup/memory")
V2 = Path("/sys/fs/cgroup")
pytestmark = pytest.mark.timeout(120)


def ended(job: Job) -> bool:
    return job.over


def test_a_segmentation_fault_tells_where(tmp_path: Path) -> None:
    script = "import ctypes\ndef crash():\n    ctypes.string_at(0)\ncrash()\n"
    with running(tmp_path, script, 1) as job:
        assert job.until(ended)
        why = job.why[0]
        assert (why["signal"], why["cause"]) == ("SIGSEGV", "segmentation-fault")
        assert why["place"] == "crash() at train.py:3"
        assert "crash() at train.py:3" in why["text"]


@pytest.mark.skipif(not KernelLog().readable, reason="needs the kernel's log: run as root")
def test_without_the_watch_inside_the_kernel_tells_the_library(tmp_path: Path) -> None:
    with running(tmp_path, "import ctypes\nctypes.string_at(0)\n", 1, inside=False) as job:
        assert job.until(ended)
        why = job.why[0]
        assert why["cause"] == "segmentation-fault"
        assert why["library"].startswith(("libc", "libpython", "_ctypes", "python"))
        assert why["text"] == f"a segmentation fault in {why['library']}"


def test_a_rank_that_somebody_killed(tmp_path: Path) -> None:
    with running(tmp_path, "import time; print('up', flush=True); time.sleep(100)", 1) as job:
        assert job.until(lambda job: job.said(0, "up"))
        os.kill(job.ranks[0].pid, signal.SIGKILL)
        assert job.until(ended)
        assert job.why[0]["signal"] == "SIGKILL"
        assert job.why[0]["cause"] == ("killed" if KernelLog().readable else "unknown")
        assert job.why[0]["peak_memory"] > 1 << 20


def test_a_plain_exit_needs_no_reason(tmp_path: Path) -> None:
    with running(tmp_path, "raise SystemExit(3)", 1) as job:
        assert job.until(ended)
        assert (job.codes[0], dict(job.why[0])) == (3, {})


@pytest.fixture
def group(tmp_path: Path) -> Path:
    """A control group of our own with 64 MiB."""
    for top, limit in ((MEMORY, "memory.limit_in_bytes"), (V2, "memory.max")):
        folder = top / f"phalanx-test-{os.getpid()}"
        try:
            folder.mkdir()
            (folder / limit).write_text(str(64 << 20))
        except OSError:
            if folder.is_dir():
                folder.rmdir()
            continue
        return folder
    pytest.skip("needs a control group that may be written to: run as root")


def test_the_limit_of_a_control_group(tmp_path: Path, group: Path) -> None:
    script = f"""
import os
open({str(group / "cgroup.procs")!r}, "w").write(str(os.getpid()))
held = []
while True:
    held.append(bytearray(1 << 20))
"""
    try:
        with running(tmp_path, script, 1) as job:
            assert job.until(ended)
            why = job.why[0]
            assert (why["signal"], why["cause"]) == ("SIGKILL", "oom-cgroup")
            if KernelLog().readable:
                assert why["limit"] == 64 << 20
                assert "64 MiB" in why["text"]
                assert 32 << 20 < why["resident"] < 128 << 20  # with pages of files, which count elsewhere
            found = read_group(group)
            assert found is not None
            assert (found.kills, found.limit) == (1, 64 << 20)
    finally:
        group.rmdir()


def test_a_bus_error_comes_with_the_figures_of_shared_memory() -> None:
    deaths = DeathWatch()
    deaths.sample([])
    why = deaths.reason(os.getpid(), -signal.SIGBUS, None, ())
    assert why["cause"] in ("bus-error", "shm-full")
    assert why["shm_size"] > 0
    assert "/dev/shm" in why["text"]
    deaths.close()


def test_full_shared_memory_is_said() -> None:
    deaths = DeathWatch()
    deaths._shared_peak, deaths._shared_size = 63 << 20, 64 << 20
    assert (
        deaths.reason(1, 128 + signal.SIGBUS, None, ())["text"]
        == "a bus error: /dev/shm was full (63 MiB of 64 MiB used)"
    )
    deaths.close()


def test_the_kernels_words(tmp_path: Path) -> None:
    log = KernelLog(str(tmp_path / "missing"))
    assert not log.readable
    log.read()
    for line in (
        "memory: usage 102400kB, limit 102400kB, failcnt 55",
        "Memory cgroup out of memory: Killed process 41 (python) total-vm:941200kB, anon-rss:80120kB, file-rss:20kB, shmem-rss:0kB, UID:0",
        "Out of memory: Killed process 42 (pt_main_thread) total-vm:9412kB, anon-rss:8012kB, file-rss:0kB, shmem-rss:4kB, UID:0",
        "python[43]: segfault at 0 ip 00007f1 sp 00007f2 error 4 in libtorch_cpu.so[7f12+4000] likely on CPU 1",
        "traps: python[44] trap invalid opcode ip:7f1 sp:7f2 error:0 in libfbgemm.so[7f12+4000]",
        "EXT4-fs (sda1): mounted filesystem",
    ):
        log.take(line)
    assert (log.kills[41].of_group, log.kills[41].resident, log.kills[41].limit) == (True, 80140 * 1024, 102400 * 1024)
    assert (log.kills[42].of_group, log.kills[42].limit) == (False, None)
    assert (log.faults[43].kind, log.faults[43].library) == ("segfault", "libtorch_cpu.so")
    assert (log.faults[44].kind, log.faults[44].library) == ("trap invalid opcode", "libfbgemm.so")
    assert set(log.kills) | set(log.faults) == {41, 42, 43, 44}
    deaths = DeathWatch(log)
    assert deaths.reason(42, -9, None, ())["cause"] == "oom-machine"
    assert deaths.reason(44, -signal.SIGILL, None, ())["text"] == "an illegal instruction in libfbgemm.so"


@pytest.mark.parametrize("events", ["low 0\noom 3\noom_kill 2\n", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"])
def test_counters_of_both_versions(tmp_path: Path, events: str) -> None:
    folder = tmp_path / "root" / "job" / "step"
    folder.mkdir(parents=True)
    version2 = "low" in events
    (folder / ("memory.events" if version2 else "memory.oom_control")).write_text(events)
    (folder / ("memory.max" if version2 else "memory.limit_in_bytes")).write_text("max" if version2 else str(1 << 62))
    (folder.parent / ("memory.max" if version2 else "memory.limit_in_bytes")).write_text(str(1 << 30))
    found = read_group(folder, tmp_path / "root")
    assert found is not None
    assert (found.kills, found.limit) == (2, 1 << 30)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_worker_that_the_kernel_killed_is_told_with_its_rank() -> None:
    log = KernelLog("/nonexistent")
    deaths = DeathWatch(log)
    deaths._family[77] = 3
    log.take("Out of memory: Killed process 77 (python) total-vm:9412kB, anon-rss:8012kB, file-rss:0kB, shmem-rss:4kB")
    (seen,) = deaths.children_killed({})
    assert (seen.kind, seen.ranks, seen.data["cause"]) == ("death", (3,), "oom-machine")
    assert deaths.children_killed({}) == []
