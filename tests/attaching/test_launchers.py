"""Attaching to jobs of other launchers, and on machines that are reached through them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.backends.slurm_cluster import Slurm
from tests.calls import clusters
from tests.run.test_other_frameworks import python_with

from ..needs import needs_torch
from .jobs import attach, by_hand, free_port, job, wait_until_ready

pytestmark = [pytest.mark.job, pytest.mark.timeout(500)]
# torch reads nothing of Open MPI's and Slurm's, so scripts set its variables themselves.
FROM = "import os, runpy, sys; e = os.environ; e['RANK'], e['WORLD_SIZE'] = e['{rank}'], e['{size}']; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
HOROVOD = """\
import sys, time
import horovod.torch as hvd, torch
hvd.init()
def evaluate():
    time.sleep(600)
step = 0
while True:
    step += 1
    if step == 5:
        open(f"ready{hvd.rank()}", "w").close()
        if hvd.rank() == 1:
            evaluate()
    hvd.allreduce(torch.ones(2), name="gradient")
"""


@needs_torch
def test_mpirun(tmp_path: Path) -> None:
    store = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    code = FROM.format(rank="OMPI_COMM_WORLD_RANK", size="OMPI_COMM_WORLD_SIZE")
    command = [clusters.open_mpi(), "-n", "3", "--oversubscribe", "--bind-to", "none"]
    with job(tmp_path, [[*command, sys.executable, "-c", code, "train.py", "sleep"]], [{**store, **root}]) as pids:
        wait_until_ready(tmp_path, range(3))
        report, status, err = attach(str(pids[0]))
        assert status == 1, err
        assert report["verdict"]["culprit_ranks"] == [1]


@needs_torch
def test_the_nodes_of_a_slurm_job(tmp_path: Path, slurm_cluster: Slurm) -> None:
    code = FROM.format(rank="SLURM_PROCID", size="SLURM_NTASKS")
    store = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), **slurm_cluster.environment}
    command = [
        "srun",
        "-N2",
        "-n3",
        "--overcommit",
        "--job-name=attached",
        sys.executable,
        "-c",
        code,
        "train.py",
        "sleep",
    ]
    with job(tmp_path, [command], [store]):
        wait_until_ready(tmp_path, range(3))
        found = slurm_cluster.call("squeue", "-h", "--name=attached", "-o", "%i").split()
        report, status, err = attach("--slurm", found[0])
        slurm_cluster.call("scancel", found[0])
        assert status == 1, err
        assert report["verdict"]["culprit_ranks"] == [1]


@needs_torch
def test_hosts_over_ssh(tmp_path: Path, ssh_config: Path) -> None:
    with by_hand(tmp_path, "sleep") as pids:
        wait_until_ready(tmp_path, range(3))
        began = time.monotonic()
        each = f"ssh -F {ssh_config} -o BatchMode=yes {{}}"
        report, status, err = attach(str(pids[0]), "--hosts", "alpha,beta", "--each", each)
        assert status == 1, err
        assert report["verdict"]["culprit_ranks"] == [1]
        assert time.monotonic() - began < 120


def test_horovodrun(tmp_path: Path) -> None:
    python = python_with("horovod", "horovod, built with Gloo")
    horovodrun = Path(python).with_name("horovodrun")
    command = [str(horovodrun), "-np", "3", "--gloo", "-H", "localhost:3", python, "hang.py"]
    (tmp_path / "hang.py").write_text(HOROVOD)
    with job(tmp_path, [command], [{}]) as pids:
        wait_until_ready(tmp_path, range(3))
        report, status, err = attach(str(pids[0]))
        assert status == 1, err
        assert report["verdict"]["culprit_ranks"] == [1]
        assert "hang.py:5" in str(report["verdict"])


def test_the_job_does_not_notice(tmp_path: Path) -> None:
    """A loop that attaches again and again leaves its target running."""
    counting = (
        "import time\nn = 0\nwhile True:\n    n += 1\n    open('count', 'w').write(str(n))\n    time.sleep(0.01)\n"
    )
    (tmp_path / "count.py").write_text(counting)
    variables = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": "61010"}
    with job(tmp_path, [[sys.executable, "count.py"]], [variables]) as pids:
        from phalanx.run.watch.stacks import take_stacks

        time.sleep(1)
        for _ in range(100):
            assert take_stacks(pids, values=True)[pids[0]].error == ""
        before = (tmp_path / "count").stat().st_mtime_ns
        time.sleep(1)
        assert (tmp_path / "count").stat().st_mtime_ns > before
        assert subprocess.run(["kill", "-0", str(pids[0])], check=False).returncode == 0
