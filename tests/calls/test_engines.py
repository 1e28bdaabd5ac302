"""Every engine does the same: results in order, the culprit named on two nodes, nothing left. Real Slurm, Open MPI, Ray."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import phalanx
from tests.backends.kube_api import Cluster as KubernetesApi
from tests.backends.slurm_cluster import Slurm
from tests.run.jobs import processes_of, run, said, wait_for

from . import jobs
from .conftest import SOURCE, On

ENGINES = ("slurm", "mpi", "ray", "kubernetes")
WITH_MPICH = (*ENGINES, "mpich")  # for what depends on the words that mpirun is given
pytestmark = pytest.mark.timeout(600)
torch_job = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="needs PyTorch: pip install torch==2.13.0, or make test"
)


@phalanx.function(workers=4, framework="none", grace=2)
def wait(vanishes: bool) -> None:
    """Ranks that wait; one of them takes its agent away."""
    print("here", flush=True)
    if vanishes and os.environ["RANK"] == "3":
        os.kill(os.getppid(), 9)
    time.sleep(3600)


@torch_job
@pytest.mark.job
@pytest.mark.parametrize("engine", WITH_MPICH, indirect=True)
def test_results_come_back_in_order_of_ranks(on: On) -> None:
    results = on(jobs.train)("ok")
    assert [(one["rank"], one["sum"], one["node"], one["local"]) for one in results] == [
        (0, 6.0, "0", "0"),
        (1, 6.0, "0", "1"),
        (2, 6.0, "1", "0"),
        (3, 6.0, "1", "1"),
    ]


@torch_job
@pytest.mark.job
@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_the_one_that_raises_is_named_while_the_others_wait(on: On, tmp_path: Path) -> None:
    with pytest.raises(phalanx.JobFailed) as caught:
        on(jobs.train)("raise")
    failed = caught.value
    assert (failed.rank, failed.culprits) == (2, (2,))
    assert 2 not in failed.victims
    assert type(failed.__cause__) is ValueError
    assert str(failed.__cause__) == "bad sample 17"
    assert failed.bundle is not None
    assert all((failed.bundle / "attempt0" / f"rank{rank}" / "exit.json").is_file() for rank in range(4))
    assert wait_for(lambda: processes_of(tmp_path) == [], 60)


@pytest.mark.parametrize("engine", WITH_MPICH, indirect=True)
def test_a_node_whose_agent_vanishes_is_named(on: On, tmp_path: Path) -> None:
    with pytest.raises(phalanx.JobFailed, match="vanished") as caught:
        on(wait)(vanishes=True)
    assert set(caught.value.culprits) == {2, 3}
    assert set(caught.value.victims) <= {0, 1}
    assert wait_for(lambda: processes_of(tmp_path) == [], 60)


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_cancel_leaves_nothing(on: On, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    call = on(wait).submit(vanishes=False)
    assert wait_for(lambda: call.done() or len(list(call.logs())) == 4), call.status()
    assert call.status().state == "running"
    call.cancel(wait=True)
    assert call.status().state == "cancelled"
    assert wait_for(lambda: processes_of(tmp_path) == [], 60)
    if "slurm_cluster" in request.fixturenames:
        assert request.getfixturevalue("slurm_cluster").queue(tmp_path) == []
    if "kubernetes_api" in request.fixturenames:
        assert request.getfixturevalue("kubernetes_api").objects == {}


DRIVER = """\
import json, sys, time, phalanx
@phalanx.function(workers=4, framework="none", grace=2)
def wait():
    print("here", flush=True)
    time.sleep(3600)
name, options, env = json.loads(sys.argv[1])
wait.options(env=env).on(name, **options)()
"""


def start_driver(folder: Path, name: str, options: dict[str, object]) -> subprocess.Popen[bytes]:
    """A call in a process of its own."""
    (folder / "driver").mkdir()
    (folder / "driver" / "job.py").write_text(DRIVER)
    marks = {"PYTHONPATH": SOURCE, "TEST_JOB": str(folder)}
    return subprocess.Popen(
        [sys.executable, "job.py", json.dumps([name, options, marks], default=str)],
        cwd=folder / "driver",
        stdout=(folder / "out").open("wb"),
        stderr=subprocess.STDOUT,
        env=os.environ | marks,
    )


@pytest.mark.parametrize("engine", ["ssh", *WITH_MPICH], indirect=True)
def test_when_the_driver_is_killed_nothing_runs_on(
    engine: tuple[str, dict[str, object]], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    driver = start_driver(tmp_path, *engine)
    out = tmp_path / "out"
    all_here = [0, 1, 2, 3]
    assert wait_for(lambda: driver.poll() is not None or said(out.read_text()).get("here") == all_here), out.read_text()
    assert len(processes_of(tmp_path)) > 4
    driver.kill()
    driver.wait()
    assert wait_for(lambda: processes_of(tmp_path) == [], 30), processes_of(tmp_path)
    if "slurm_cluster" in request.fixturenames:
        assert wait_for(lambda: request.getfixturevalue("slurm_cluster").queue(tmp_path) == [], 30)
    if "kubernetes_api" in request.fixturenames:
        assert wait_for(lambda: request.getfixturevalue("kubernetes_api").objects == {}, 30)


def test_when_the_driver_is_killed_its_job_leaves_slurms_queue(slurm_cluster: Slurm, tmp_path: Path) -> None:
    slurm_cluster.call("scontrol", "update", "PartitionName=all", "State=DOWN")
    try:
        driver = start_driver(tmp_path, "slurm", {"nodes": 2})
        assert wait_for(lambda: driver.poll() is not None or slurm_cluster.queue(tmp_path) != []), (
            tmp_path / "out"
        ).read_text()
        time.sleep(0.5)  # between sbatch's answer and the will there is a moment
        driver.kill()
        driver.wait()
        assert wait_for(lambda: slurm_cluster.queue(tmp_path) == [] and processes_of(tmp_path) == [], 30)
    finally:
        slurm_cluster.call("scontrol", "update", "PartitionName=all", "State=UP")


@phalanx.function(workers=(2, 4), framework="none", grace=2, retries=1)
def save_and_lose() -> tuple[str, str, str]:
    """At the first attempt rank 3 takes its agent away, after a checkpoint."""
    folder, last, rank = phalanx.checkpoints(), phalanx.last_checkpoint(), os.environ["RANK"]
    assert folder is not None
    if phalanx.attempt() == 0:
        if rank == "0":
            (folder / "step7").write_text("whole")
        while rank == "3" and not (folder / "step7").exists():
            time.sleep(0.1)
        if rank == "3":
            os.kill(os.getppid(), 9)
        time.sleep(3600)
    return rank, os.environ["WORLD_SIZE"], last.name if last else "nothing"


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_after_a_node_was_lost_fewer_workers_go_on_from_the_last_checkpoint(on: On, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    call = on(save_and_lose.options(checkpoints=str(tmp_path / "kept"))).submit()
    assert call.results() == [("0", "2", "step7"), ("1", "2", "step7")]
    assert call.status().attempt == 1
    assert wait_for(lambda: processes_of(tmp_path) == [], 60)


def test_a_train_job_of_kubeflows_trainer(kubernetes_api: KubernetesApi) -> None:
    options = {"kubeconfig": kubernetes_api.kubeconfig, "image": "registry/train:1", "driver": "127.0.0.1"}
    odd = "x $(PATH) $$ `id`"
    place = phalanx.function(workers=2, framework="none", grace=2, env={"PYTHONPATH": SOURCE, "ODD": odd})(jobs.place)
    on = place.on("kubernetes", kind="trainjob", nodes=2, project=Path(__file__).parent, **options)
    kubernetes_api.events.clear()
    results = on("RANK", "ODD", "PET_NNODES", "PHALANX_TOKEN")
    assert results == [{"RANK": str(rank), "ODD": odd, "PET_NNODES": None, "PHALANX_TOKEN": None} for rank in (0, 1)]
    changes = [event for event in kubernetes_api.events if not event.startswith(("get", "list"))]
    assert changes[:4] == ["dry-run trainjobs", "create secrets", "create trainjobs", "patch secrets"]
    assert kubernetes_api.objects == {}


def test_pods_that_find_no_node_wait_and_can_be_cancelled(
    kubernetes_api: KubernetesApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_api, "schedules", False)
    on = wait.on("kubernetes", kubeconfig=kubernetes_api.kubeconfig, image="i", project=Path(__file__).parent)
    call = on.submit(vanishes=False)
    assert wait_for(lambda: call.done() or "Unschedulable" in str(call.status())), call.status()
    assert call.status().state == "queued"
    call.cancel(wait=True)
    assert call.status().state == "cancelled"
    assert kubernetes_api.objects == {}


def test_a_job_that_waits_in_slurms_queue_says_why_and_can_be_cancelled(slurm_cluster: Slurm, tmp_path: Path) -> None:
    slurm_cluster.call("scontrol", "update", "PartitionName=all", "State=DOWN")
    try:
        call = wait.on("slurm", nodes=2, project=Path(__file__).parent).submit(vanishes=False)
        assert wait_for(lambda: call.done() or "PartitionDown" in str(call.status())), call.status()
        assert call.status().state == "queued"
        call.cancel(wait=True)
        assert call.status().state == "cancelled"
        assert slurm_cluster.queue(tmp_path) == []
    finally:
        slurm_cluster.call("scontrol", "update", "PartitionName=all", "State=UP")


def test_what_slurm_does_not_allow_is_told_in_its_own_words(slurm_cluster: Slurm, tmp_path: Path) -> None:
    with pytest.raises(phalanx.PhalanxError, match="partition"):
        wait.on("slurm", partition="nope", project=Path(__file__).parent)(vanishes=False)
    with pytest.raises(phalanx.PhalanxError, match=r"node configuration|Node count"):
        wait.on("slurm", nodes=4, project=Path(__file__).parent)(vanishes=False)
    assert slurm_cluster.queue(tmp_path) == []


def test_what_ray_never_will_have_does_not_wait_for_ever(ray_address: str) -> None:
    with pytest.raises(phalanx.PhalanxError, match="the Ray cluster has 2"):
        wait.on("ray", address=ray_address, nodes=3, project=Path(__file__).parent)(vanishes=False)
    with pytest.raises(phalanx.PhalanxError, match="no node of the Ray cluster has 4 CPU"):
        wait.on("ray", address=ray_address, nodes=1, project=Path(__file__).parent)(vanishes=False)


def test_a_script_on_slurm(slurm_cluster: Slurm, tmp_path: Path) -> None:
    script = (
        "import os, sys, time\n"
        "rank = int(os.environ['RANK'])\n"
        "print('rank', rank, 'of', os.environ['WORLD_SIZE'], 'group', os.environ['GROUP_RANK'], sys.argv[1:], flush=True)\n"
        "if rank == 3:\n    raise ValueError('bad sample 17')\n"
        "time.sleep(2)\n"
    )
    engine = ("--on", "slurm", "--with", "nodes=2", "--env", f"PYTHONPATH={SOURCE}")
    done = run(tmp_path, "-n", "4", "--grace", "2", *engine, "train.py", "a;b $(c)", script=script)
    assert done.status == 1, done.err
    for rank in range(4):
        assert f"rank {rank} of 4 group {rank // 2} ['a;b $(c)']" in done.out
    assert done.report()["verdict"]["culprit_ranks"] == [3]
    assert done.manifest()["backend"] == "slurm"
    assert slurm_cluster.queue(tmp_path) == []


def test_the_drivers_port_can_be_chosen_and_a_bad_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    on = wait.on("mpi", mpirun="no-such-mpirun", project=Path(__file__).parent)
    monkeypatch.setenv("PHALANX_DRIVER_PORT", "many")
    with pytest.raises(phalanx.CannotStart, match="PHALANX_DRIVER_PORT=many: give the number"):
        on(vanishes=False)
    with socket.create_server(("0.0.0.0", 0)) as taken:
        monkeypatch.setenv("PHALANX_DRIVER_PORT", str(taken.getsockname()[1]))
        with pytest.raises(phalanx.CannotStart, match=r"cannot listen at \S+ port"):
            on(vanishes=False)
    for _ in range(2):  # the port is free now, and again after a failure
        with pytest.raises(phalanx.CannotStart, match="cannot start no-such-mpirun"):
            on(vanishes=False)
