"""Real jobs of TensorFlow, Keras, Horovod and JAX, where they are installed.

The interpreter that has a framework is named by PHALANX_<FRAMEWORK>_PYTHON, or is that of the zoo's environment, which
`make test` makes; otherwise this one is asked.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from .jobs import run, said

ENVIRONMENTS = Path(__file__).parents[2] / ".zoo" / "environments"
pytestmark = [pytest.mark.job, pytest.mark.timeout(600)]


def python_with(framework: str, package: str) -> str:
    """An interpreter that has it; skips with what to install where there is none."""
    name = f"PHALANX_{framework.upper().replace('-', '_')}_PYTHON"
    if name in os.environ:
        return os.environ[name]
    made = ENVIRONMENTS / {"keras": "tensorflow"}.get(framework, framework)
    if made.with_name(f"{made.name}.whole").is_file():
        return str(made / "bin" / "python")
    if importlib.util.find_spec(framework.partition("-")[0]) is None:
        pytest.skip(f"needs {framework}: `make frameworks`, pip install {package}, or set {name} to an interpreter")
    return sys.executable


ALL_REDUCE = """\
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
@tf.function
def reduce():
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.ones([2])))
print("sum", reduce().numpy().tolist(), strategy.num_replicas_in_sync, flush=True)
"""
PARAMETER_SERVER = """\
import tensorflow as tf
here = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if here.task_type in ("worker", "ps"):
    tf.distribute.Server(here.cluster_spec(), job_name=here.task_type, task_index=here.task_id).join()
strategy = tf.distribute.ParameterServerStrategy(here)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    counter = tf.Variable(0.0)
@tf.function
def step():
    counter.assign_add(1.0)
for _ in range(6):
    coordinator.schedule(step)
coordinator.join()
print("counted", counter.numpy(), flush=True)
"""
PARAMETER_SERVER_TRAINING = (
    PARAMETER_SERVER.split("with strategy.scope")[0]
    + """\
with strategy.scope():
    weights = tf.Variable(tf.zeros([8, 1]))
def dataset():
    x = tf.random.stateless_normal([64, 8], seed=[1, 2])
    return tf.data.Dataset.from_tensor_slices((x, tf.reduce_sum(x, 1, keepdims=True))).repeat().batch(16).prefetch(2)
batches = iter(coordinator.create_per_worker_dataset(dataset))
@tf.function
def step(batches):
    x, y = next(batches)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weights - y) ** 2)
    weights.assign_sub(0.05 * tape.gradient(loss, weights))
for _ in range(20):
    coordinator.schedule(step, args=(batches,))
coordinator.join()
print("trained", flush=True)
"""
)
MIRRORED = """\
import tensorflow as tf
devices = [device.name for device in tf.config.list_logical_devices("CPU")]
print("replicas", tf.distribute.MirroredStrategy(devices).num_replicas_in_sync, __name__)
"""
KERAS = """\
import keras, numpy
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(numpy.ones((8, 4)), numpy.ones((8, 1)), verbose=0)
print("fitted", flush=True)
"""
HOROVOD = """\
import torch, horovod.torch as hvd
hvd.init()
print("sum", hvd.allreduce(torch.ones(2), op=hvd.Sum).tolist(), flush=True)
hvd.shutdown()
hvd.init()  # ranks can meet again
print("again", hvd.allreduce(torch.ones(1), op=hvd.Sum).tolist(), flush=True)
"""
JAX = """\
import jax
jax.distributed.initialize()
from jax.experimental import multihost_utils
import jax.numpy as jnp
print("gathered", multihost_utils.process_allgather(jnp.array([jax.process_index()])).tolist(), flush=True)
"""


def test_tensorflow_workers(tmp_path: Path) -> None:
    python = python_with("tensorflow", "tensorflow-cpu")
    done = run(tmp_path, "-n", "2", "--python", python, "train.py", script=ALL_REDUCE)
    assert done.status == 0, done.err
    assert said(done.out)["sum [2.0, 2.0] 2"] == [0, 1]


def test_tensorflow_parameter_server_ends_when_the_chief_is_done(tmp_path: Path) -> None:
    python = python_with("tensorflow", "tensorflow-cpu")
    done = run(tmp_path, "--roles", "chief=1,worker=1,ps=1", "--python", python, "train.py", script=PARAMETER_SERVER)
    assert done.status == 0, done.err
    assert said(done.out)["counted 6.0"] == [0]
    assert done.exit(2)["by"] == "end of service"


def test_tensorflow_parameter_server_trains_from_datasets_of_its_workers(tmp_path: Path) -> None:
    """Workers read their data while the coordinator schedules steps: this deadlocks if their threads are limited to one."""
    python = python_with("tensorflow", "tensorflow-cpu")
    roles = ("--roles", "chief=1,worker=2,ps=1", "--stall-after", "60", "--on-stall", "abort")
    done = run(tmp_path, *roles, "--python", python, "train.py", script=PARAMETER_SERVER_TRAINING)
    assert done.status == 0, done.err
    assert said(done.out)["trained"] == [0]


def test_tensorflow_virtual_devices(tmp_path: Path) -> None:
    python = python_with("tensorflow", "tensorflow-cpu")
    done = run(tmp_path, "--virtual-devices", "3", "--python", python, "train.py", script=MIRRORED)
    assert done.status == 0, done.err
    assert "replicas 3 __main__" in done.out


def test_keras(tmp_path: Path) -> None:
    python = python_with("keras", "keras tensorflow-cpu")
    done = run(tmp_path, "-n", "1", "--python", python, "train.py", script=KERAS)
    assert done.status == 0, done.err
    assert "fitted" in done.out
    assert "keras (train.py imports keras)" in done.err


def test_horovod(tmp_path: Path) -> None:
    python = python_with("horovod", "horovod, built with Gloo")
    done = run(tmp_path, "-n", "2", "--python", python, "train.py", script=HOROVOD)
    assert done.status == 0, done.err
    assert said(done.out) == {"sum [2.0, 2.0]": [0, 1], "again [2.0]": [0, 1]}


def test_jax(tmp_path: Path) -> None:
    python = python_with("jax", "jax jaxlib")
    done = run(tmp_path, "-n", "2", "--python", python, "train.py", script=JAX)
    assert done.status == 0, done.err
    assert said(done.out)["gathered [[0], [1]]"] == [0, 1]
