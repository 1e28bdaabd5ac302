"""Workers of Ray Train: which thread trains, and which rank the worker is, by its own log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from phalanx.attaching.ray_train import is_ray_process, ray_identity, with_training_thread
from phalanx.model import Frame
from phalanx.run.watch.stacks import ProcessStacks, Thread

ROOT = Frame("ray/_private/workers/default_worker.py", 323, "<module>")
MAIN = Thread("MainThread", False, (ROOT, Frame("ray/_private/worker.py", 1069, "Worker.main_loop")))
RUNNER = Frame("ray/train/v2/_internal/execution/worker_group/thread_runner.py", 37, "_run_target")
OWN = Frame("/a/train.py", 20, "train")


def test_the_thread_that_ray_train_started_is_the_main_one() -> None:
    training = Thread("TrainingThread(f)", False, (Frame("threading.py", 1, "run"), RUNNER, OWN), values=({}, {}, {}))
    found = with_training_thread(ProcessStacks(7, (MAIN, training)))
    assert found.main is not None
    assert found.main.frames == (ROOT, *training.frames)
    assert len(found.main.values) == len(found.main.frames)
    assert len(found.threads) == 2


def test_a_thread_of_the_users_own_is_none() -> None:
    """Nor is one of Ray's without a function of the user's."""
    other = Thread("mine", False, (Frame("threading.py", 1, "run"), OWN))
    monitor = Thread("MonitoringThread(f)", False, (RUNNER,))
    stacks = ProcessStacks(7, (MAIN, other, monitor))
    assert with_training_thread(stacks) is stacks


def test_the_rank_stands_in_the_workers_log(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    log = tmp_path / "train" / "ray-train-sys-worker-ab12.log"
    with (tmp_path / "worker-ab12-02000000-77.out").open("wb") as out:
        worker = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=out)
        try:
            assert ray_identity(worker.pid) is None
            log.write_text(
                json.dumps({"message": "x", "run_name": "mnist", "world_rank": 3, "local_rank": 1}) + "\n{\n"
            )
            found = ray_identity(worker.pid)
        finally:
            worker.communicate(b"\n", timeout=10)
    assert found is not None
    assert (found.job, found.rank, found.local_rank) == ("ray:02000000/mnist", 3, 1)
    assert ray_identity(os.getpid()) is None


def test_titles() -> None:
    assert is_ray_process(("ray::RayTrainWorker   ",))
    assert not is_ray_process(("python", "ray::x"))
    assert not is_ray_process(())
