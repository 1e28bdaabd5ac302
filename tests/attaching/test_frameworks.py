"""Attaching to jobs of accelerate, DeepSpeed and Ray Train. Each job is healthy, then slow, then hangs, and is looked at three times."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..needs import needs_torch
from .jobs import attach, free_port, job, wait_until_ready
from .scripts import ACCELERATE, PLAIN, RAY

pytestmark = [pytest.mark.job, needs_torch, pytest.mark.timeout(500)]


def needs(package: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"needs {package}: pip install --no-deps {package}, beside its needs")


def write(folder: Path, script: str) -> None:
    (folder / "phase").write_text("healthy")
    (folder / "script.py").write_text(script)


def healthy_slow_and_hung(folder: Path, look: Callable[[], tuple[str, ...]], line: str) -> str:
    """The three looks; returns what was said at the last."""
    wait_until_ready(folder, range(2))
    for phase in ("healthy", "slow"):
        (folder / "phase").write_text(phase)
        report, status, err = attach(*look())
        assert (status, report.get("verdict")) == (0, None), f"{phase}: {err} {report}"
    (folder / "phase").write_text("sleep")
    for _ in range(3):  # ranks read the phase at their next step
        report, status, err = attach(*look())
        if status == 1:
            break
    assert status == 1, f"{err} {report}"
    assert report["verdict"]["culprit_ranks"] == [1]
    assert f"script.py:{line}" in str(report["verdict"])
    return err


@needs("accelerate")
def test_accelerate_launch(tmp_path: Path) -> None:
    write(tmp_path, ACCELERATE)
    command = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    command += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    command += ["--main_process_port", str(free_port()), "script.py"]
    with job(tmp_path, [command], [{"ACCELERATE_USE_CPU": "true"}]) as pids:
        said = healthy_slow_and_hung(tmp_path, lambda: (str(pids[0]),), "6")
        assert "started by -m accelerate.commands.launch" in said


@needs("deepspeed")
def test_the_launcher_of_deepspeed(tmp_path: Path) -> None:
    write(tmp_path, PLAIN)  # deepspeed itself would compile its operations first
    command = [sys.executable, "-m", "deepspeed.launcher.runner", "--num_gpus", "2", "--no_local_rank"]
    command += ["--master_port", str(free_port()), "script.py"]
    with job(tmp_path, [command], [{"DS_ACCELERATOR": "cpu"}]) as pids:
        said = healthy_slow_and_hung(tmp_path, lambda: (str(pids[0]),), "6")
        assert "started by -m deepspeed.launcher.launch" in said


@needs("ray")
@needs("pyarrow")
def test_ray_train_on_two_nodes(tmp_path: Path, ray_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by Ray's number of the job; its workers train in a thread beside their main one."""
    write(tmp_path, RAY)
    monkeypatch.setenv("RAY_ADDRESS", ray_address)
    with job(tmp_path, [[sys.executable, "script.py"]], [{"CLUSTER": ray_address}]):
        said = healthy_slow_and_hung(tmp_path, lambda: ("--ray", (tmp_path / "job").read_text()), "6")
        assert "ranks 0, 1, 2 of 3 on" in said
        assert "order of start" not in said
    _, status, err = attach("--ray", "ffff0000")
    assert status == 2
    assert "Ray knows no running job ffff0000" in err
