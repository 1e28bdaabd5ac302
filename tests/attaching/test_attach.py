"""`phalanx attach` to real jobs that somebody else started: hanging ones, and their healthy and slow twins."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ..needs import needs_torch
from .jobs import attach, by_hand, by_spawn, by_torchrun, wait_until_ready

pytestmark = [pytest.mark.job, needs_torch, pytest.mark.timeout(400)]


def culprits(report: dict[str, Any]) -> list[int]:
    assert report["verdict"] is not None, report["attached"]
    return list(report["verdict"]["culprit_ranks"])


@pytest.mark.parametrize(("fault", "place"), [("sleep", "train.py:20"), ("lock", "train.py:24"), ("uneven", "barrier")])
def test_a_rank_that_is_elsewhere_is_named_with_its_line(tmp_path: Path, fault: str, place: str) -> None:
    with by_hand(tmp_path, fault) as pids:
        wait_until_ready(tmp_path, range(3))
        report, status, err = attach(str(pids[2]))
        assert status == 1, err
        assert culprits(report) == [1]
        assert place in str(report["verdict"])
        assert "ranks 0, 1, 2 of 3 here" in err


def test_a_data_loader_that_is_blocked(tmp_path: Path) -> None:
    with by_torchrun(tmp_path, "data") as pids:
        wait_until_ready(tmp_path, range(3))
        report, status, err = attach(str(pids[0]))  # the launcher's number
        assert status == 1, err
        assert culprits(report) == [1]
        assert "Files.__getitem__" in str(report["verdict"])


def test_ranks_of_mp_spawn_are_numbered_by_their_stacks(tmp_path: Path) -> None:
    with by_spawn(tmp_path, "sleep") as pids:
        wait_until_ready(tmp_path, range(3))
        report, status, err = attach(str(pids[0]))
        assert status == 1, err
        assert culprits(report) == [1]
        assert "numbered by stack" in err


def test_a_stopped_rank(tmp_path: Path) -> None:
    with by_hand(tmp_path, "healthy") as pids:
        wait_until_ready(tmp_path, range(3))
        os.kill(pids[1], signal.SIGSTOP)
        report, status, err = attach(str(pids[0]))
        os.kill(pids[1], signal.SIGCONT)
        assert status == 1, err
        assert culprits(report) == [1]
        assert report["verdict"]["confidence"] == "confirmed"


def test_a_rank_that_is_gone(tmp_path: Path) -> None:
    with by_hand(tmp_path, "gone") as pids:
        wait_until_ready(tmp_path, range(3))
        report, status, err = attach(str(pids[0]))
        assert "not on this machine" in err  # rank 1, and perhaps others that ended because of it
        assert status in (1, 2) or report["verdict"] is None, err
        if status == 1:  # Gloo tells the others at once that their peer is gone, and they may have ended, too
            assert culprits(report) == [1]


@pytest.mark.parametrize("fault", ["healthy", "slow", "checkpoint"])
def test_nobody_is_accused_in_a_job_that_works(tmp_path: Path, fault: str) -> None:
    with by_hand(tmp_path, fault) as pids:
        wait_until_ready(tmp_path, range(3))
        report, status, err = attach(str(pids[0]))
        assert (status, report["verdict"]) == (0, None), err
        assert "not hung" in report["attached"]["said"]
        if fault == "checkpoint":
            assert "rank 0 works in save()" in report["attached"]["said"]
            assert "ranks 1, 2 wait in barrier" in report["attached"]["said"]


def test_what_was_seen_can_be_kept_and_diagnosed_again(tmp_path: Path) -> None:
    from phalanx.diagnosis import diagnose_paths

    with by_hand(tmp_path, "sleep") as pids:
        wait_until_ready(tmp_path, range(3))
        _, status, err = attach(str(pids[0]), "--bundle", str(tmp_path / "kept"))
        assert status == 1, err
    verdict = diagnose_paths([str(tmp_path / "kept")]).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (1,)
    assert "evaluate" in (tmp_path / "kept" / "attempt0" / "rank1" / "stacks-1.txt").read_text()


def test_a_job_whose_machines_are_reached_by_a_command(tmp_path: Path) -> None:
    with by_hand(tmp_path, "sleep") as pids:
        wait_until_ready(tmp_path, range(3))
        report, status, err = attach(
            str(pids[0]), "--hosts", "here,nowhere", "--each", "sh -c 'test {} = here && exec \"$@\"' x"
        )
        assert status == 1, err
        assert culprits(report) == [1]
        assert "nowhere: " in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["4194303"], "there is no process"),
        (["--hosts", ","], "names nobody"),
        (["--each", "ssh {}"], "needs --hosts"),
        (["--hosts", "a", "--slurm", "3"], "give one of"),
        (["--hosts", "a", "--each", "ssh"], "needs {}"),
    ],
)
def test_what_cannot_be_done_is_said(arguments: list[str], said: str) -> None:
    report, status, err = attach(*arguments)
    assert (report, status) == ({}, 2)
    assert said in err


def test_a_process_of_no_job() -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            report, status, err = attach(str(other.pid))
        finally:
            other.kill()
    assert (report, status) == ({}, 2)
    assert "is no rank, launcher or helper" in err
