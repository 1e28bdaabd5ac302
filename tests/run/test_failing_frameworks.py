"""Jobs of TensorFlow, Keras and Horovod that fail under `phalanx run`: a worker raises, is killed, or is stopped.

TensorFlow's workers meet by its coordination service, Keras 3 (whose fit() does not run on several workers of TensorFlow)
on PyTorch's process group or alone, Horovod's by Gloo.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from .jobs import Done, finish, processes_of, run, said, start, wait_for
from .test_other_frameworks import python_with

pytestmark = [pytest.mark.job, pytest.mark.timeout(600)]

TENSORFLOW = """\
import json, os, sys, time
import tensorflow as tf
mode, rank = sys.argv[1], json.loads(os.environ["TF_CONFIG"])["task"]["index"]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
@tf.function
def reduce():
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.ones([2])))
for step in range(10**6):
    if step == 5 and rank == 1:
        if mode == "raise":
            raise ValueError("bad sample 17")
        if mode == "kill":
            os.kill(os.getpid(), 9)
    reduce()
    time.sleep(0.1)
    print(f"step {step}", flush=True)
"""
HOROVOD = """\
import os, sys, time
import torch, horovod.torch as hvd
mode = sys.argv[1]
hvd.init()
for step in range(10**6):
    if step == 5 and hvd.rank() == 1:
        if mode == "raise":
            raise ValueError("bad sample 17")
        if mode == "kill":
            os.kill(os.getpid(), 9)
    hvd.allreduce(torch.ones(2), name="loss")
    time.sleep(0.1)
    print(f"step {step}", flush=True)
"""
KERAS = """\
import keras, numpy
class Check(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 3:
            raise ValueError("bad sample 17")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(numpy.ones((80, 4)), numpy.ones((80, 1)), batch_size=8, verbose=0, callbacks=[Check()])
"""
JOBS = {
    "tensorflow": ("tensorflow-cpu", TENSORFLOW, 2),
    "horovod": ("horovod, built with Gloo", HOROVOD, 3),
}


def accused(done: Done) -> tuple[list[int], list[int]]:
    verdict = done.report()["verdict"]
    assert verdict is not None, done.err
    return verdict["culprit_ranks"], verdict["victim_ranks"]


@pytest.mark.parametrize("mode", ["raise", "kill"])
@pytest.mark.parametrize("framework", JOBS)
def test_the_worker_that_breaks_is_named_and_the_others_are_victims(tmp_path: Path, framework: str, mode: str) -> None:
    package, script, size = JOBS[framework]
    python = python_with(framework, package)
    done = run(tmp_path, "-n", str(size), "--python", python, "train.py", mode, script=script)
    # which of them is seen to end first, the culprit or its victims, is the framework's doing
    assert done.status != 0, done.err
    assert accused(done) == ([1], [rank for rank in range(size) if rank != 1]), done.err
    if mode == "kill":
        assert done.exit(1)["code"] == -signal.SIGKILL
    else:
        assert "bad sample 17" in done.report()["verdict"]["evidence"][0]["text"]
        assert done.exit(1)["why"]["failed_at"].startswith("train.py:")
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize("framework", JOBS)
def test_a_stopped_worker_is_named_at_once_and_the_job_ended_on_request(tmp_path: Path, framework: str) -> None:
    package, script, size = JOBS[framework]
    python = python_with(framework, package)
    arguments = ("-n", str(size), "--on-stall", "abort", "--timeout", "400", "--python", python, "train.py", "ok")
    process = start(tmp_path, *arguments, script=script)
    assert wait_for(lambda: len(said((tmp_path / "out").read_text()).get("step 5", ())) == size, 300)
    (rank_one,) = (one for one in processes_of(tmp_path) if is_rank(one, 1))
    os.kill(rank_one.pid, signal.SIGSTOP)
    done = finish(process, tmp_path)
    assert done.status == 1, done.err
    assert accused(done)[0] == [1], done.err
    assert "rank 1 is stopped by a signal" in done.err
    assert processes_of(tmp_path) == []


def is_rank(process: psutil.Process, rank: int) -> bool:
    environment = process.environ()
    task = f'"index": {rank}' in environment.get("TF_CONFIG", "")
    return task or environment.get("HOROVOD_RANK") == str(rank)


def test_a_keras_job_that_raises_says_where(tmp_path: Path) -> None:
    python = python_with("keras", "keras tensorflow-cpu")
    done = run(tmp_path, "-n", "1", "--python", python, "train.py", script=KERAS)
    assert done.status == 1, done.err
    assert any("bad sample 17" in one["text"] for one in done.report()["verdict"]["evidence"]), done.err
    assert done.exit(0)["why"]["failed_at"] == "train.py:5"


KERAS_TORCH = """\
import os, sys, time
import torch, torch.distributed as dist
import keras
mode = sys.argv[1]
dist.init_process_group("gloo")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
wrapped = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01)
for step in range(10**6):
    if step == 5 and dist.get_rank() == 1:
        if mode == "raise":
            raise ValueError("bad sample 17")
        if mode == "kill":
            os.kill(os.getpid(), 9)
        if mode == "stop":
            os.kill(os.getpid(), 19)
    optimizer.zero_grad()
    wrapped(torch.ones(8, 4)).sum().backward()
    optimizer.step()
    print(f"step {step}", flush=True)
    time.sleep(0.1)
"""


@pytest.mark.parametrize("mode", ["raise", "kill", "stop"])
def test_ranks_of_a_keras_job_on_torch(tmp_path: Path, mode: str) -> None:
    python = python_with("keras-torch", "keras torch==2.13.0")
    arguments = ("-n", "2", "--on-stall", "abort", "--env", "KERAS_BACKEND=torch", "--python", python, "train.py", mode)
    done = run(tmp_path, *arguments, script=KERAS_TORCH)
    assert done.status != 0, done.err
    assert accused(done) == ([1], [0]), done.err
