"""Real Gloo jobs with one fault each, whose dumps are diagnosed exactly; the culprit is also rank 0."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.diagnosis import diagnose_paths
from tests.needs import needs_torch

pytestmark = needs_torch
SCRIPT = Path(__file__).with_name("gloo_job.py")


def run(folder: Path, fault: str, culprit: int, world: int) -> None:
    """Start the ranks and wait until each has written its dump and left."""
    folder.mkdir()
    folder.with_suffix(".state").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = os.environ | {
        "WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, str(SCRIPT), fault, str(culprit), str(folder)]
    ranks = [
        subprocess.Popen(
            command, env=common | {"RANK": str(rank)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for rank in range(world)
    ]
    try:
        for process in ranks:
            process.wait(timeout=500)
    finally:
        for process in ranks:
            process.kill()
            process.wait()


@pytest.mark.job
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("fault", "culprit", "cause"),
    [
        ("missing", 0, "host-stalled"),
        ("order", 0, "collective-operation-differs"),
        ("skipped", 1, "collective-operation-differs"),
        ("group", 2, "other-order-of-calls"),
    ],
)
def test_the_broken_rank_of_a_real_job(tmp_path: Path, fault: str, culprit: int, cause: str) -> None:
    folder = tmp_path / "dumps"
    run(folder, fault, culprit, 3 if fault != "group" else 4)
    report = diagnose_paths([str(folder)])
    assert report.verdict is not None
    assert (report.verdict.cause, report.verdict.culprit_ranks) == (cause, (culprit,))


@pytest.mark.job
@pytest.mark.timeout(600)
def test_a_real_healthy_job(tmp_path: Path) -> None:
    folder = tmp_path / "dumps"
    run(folder, "none", 0, 3)
    report = diagnose_paths([str(folder)])
    assert len(report.read) == 3
    assert report.verdict is None


@pytest.mark.job
@pytest.mark.timeout(600)
def test_a_job_that_runs_while_it_is_looked_at(tmp_path: Path) -> None:
    """Dumps are taken at another moment on each rank, as any are: the ranks are not level, and nobody is accused."""
    folder = tmp_path / "dumps"
    run(folder, "running", 0, 3)
    for moment in ("running", "over"):
        report = diagnose_paths([str(folder / moment)])
        assert len(report.read) == 3, moment
        assert report.verdict is None, (moment, report.verdict)
