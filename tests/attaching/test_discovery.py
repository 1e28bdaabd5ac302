"""Which processes are ranks, found among real processes that carry launchers' variables."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from phalanx.attaching.discovery import FoundJob, FoundRank, Process, all_processes, jobs_by_variables, script_of
from phalanx.attaching.identity import Identity

SLEEP = "import time; time.sleep(60)"
# A launcher that starts ranks, the first of which has a helper.
LAUNCHER = """\
import os, subprocess, sys, time
ranks = [subprocess.Popen([sys.executable, "-c", sys.argv[2]], env={**os.environ, "RANK": str(n), "WORLD_SIZE": "2",
         "MASTER_PORT": sys.argv[1]}) for n in range(2)]
time.sleep(60)
"""
WITH_HELPER = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); time.sleep(60)"


@contextmanager
def started(*command: str, **variables: str) -> Iterator[int]:
    process = subprocess.Popen(command, env={**os.environ, **variables}, start_new_session=True)
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, 9)
        process.wait(10)


def found(port: str, ranks: int) -> list[FoundJob]:
    deadline = time.monotonic() + 30
    while True:
        jobs = jobs_by_variables(all_processes(lambda user: user == os.getuid()))
        mine = [job for job in jobs if job.key.endswith(f"/{port}")]
        if sum(len(job.ranks) for job in mine) >= ranks or time.monotonic() > deadline:
            return mine
        time.sleep(0.05)


def test_launchers_and_helpers_are_no_ranks() -> None:
    with started(sys.executable, "-c", LAUNCHER, "61001", WITH_HELPER, SLURM_PROCID="0", SLURM_NTASKS="1") as launcher:
        time.sleep(0.5)
        (job,) = found("61001", 2)
        assert [one.identity.rank for one in job.ranks] == [0, 1]
        assert job.launcher is not None
        assert job.launcher.pid == launcher
        assert job.size == 2


def test_two_jobs_are_kept_apart() -> None:
    with (
        started(sys.executable, "-c", LAUNCHER, "61002", SLEEP),
        started(sys.executable, "-c", LAUNCHER, "61003", SLEEP),
    ):
        first, second = found("61002", 2), found("61003", 2)
        assert len(first) == len(second) == 1
        assert first[0].key != second[0].key


def test_the_rank_is_the_python_below_a_shell() -> None:
    command = f"{sys.executable} -c '{SLEEP}'; true"
    with started("sh", "-c", command, RANK="3", WORLD_SIZE="8", MASTER_PORT="61004"):
        (job,) = found("61004", 1)
        assert job.ranks[0].process.is_python
        assert job.absent == (0, 1, 2, 4, 5, 6, 7)


def test_which_ranks_of_a_node_have_ended() -> None:
    """Ranks 4 and 6 of a node of four are there; 0 to 3 may run elsewhere, 5 and 7 ran here."""

    def one(rank: int, local: str) -> FoundRank:
        variables = {"RANK": str(rank), "LOCAL_WORLD_SIZE": local}
        return FoundRank(
            Process(9, 1, 0, "python", (), variables), Identity("torch", "job", rank, 8, local_rank=rank % 4)
        )

    assert FoundJob("job", (one(4, "4"), one(6, "4"))).missing == (5, 7)
    assert FoundJob("job", (one(4, "8"),)).missing == (0, 1, 2, 3, 5, 6, 7)
    assert FoundJob("job", (one(4, ""),)).missing == ()


def test_a_rank_whose_variables_may_not_be_read_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {11: {"rank": 0, "size": 2}, 12: {"rank": 1, "size": 2}, 13: None}
    monkeypatch.setattr("phalanx.attaching.discovery.ask_inside", lambda pid, what: answers[pid])
    (job,) = jobs_by_variables({pid: Process(pid, 10, 0, "python3", ("python3", "a.py"), None) for pid in answers})
    assert [(one.process.pid, one.identity.rank) for one in job.ranks] == [(11, 0), (12, 1)]
    assert job.size == 2


def test_what_a_command_line_runs() -> None:
    assert script_of(["python", "-u", "/a/train.py", "--lr", "1"]) == "train.py"
    assert script_of(["python", "-X", "dev", "-m", "pkg.train"]) == "-m pkg.train"
    assert script_of([]) == "?"


def test_a_rank_whose_size_only_its_script_knows_needs_torch() -> None:
    """Many programs know a variable RANK."""
    with started(sys.executable, "-c", SLEEP, RANK="1", MASTER_PORT="61005"):
        time.sleep(0.5)
        assert not jobs_by_variables(
            {
                p: o
                for p, o in all_processes(lambda user: True).items()
                if (o.variables or {}).get("MASTER_PORT") == "61005"
            }
        )
    with started(sys.executable, "-c", "import torch; " + SLEEP, RANK="1", MASTER_PORT="61006"):
        (job,) = found("61006", 1)
        assert job.ranks[0].identity.rank == 1
