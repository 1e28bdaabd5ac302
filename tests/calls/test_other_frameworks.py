"""Functions of TensorFlow, Keras and Horovod on two nodes of every engine: TF_CONFIG and Horovod's variables are the agents' work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import phalanx
from tests.run.jobs import run, said
from tests.run.test_other_frameworks import MIRRORED, PARAMETER_SERVER, python_with

from .conftest import SOURCE, On

pytestmark = [pytest.mark.job, pytest.mark.timeout(600)]


@phalanx.function(workers=2)
def sum_with_tensorflow() -> tuple[list[float], int]:
    import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]

    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    @tf.function  # type: ignore[untyped-decorator,unused-ignore]
    def reduce() -> object:
        return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.ones([2])))

    return reduce().numpy().tolist(), strategy.num_replicas_in_sync  # type: ignore[attr-defined]


@phalanx.function(workers=4)
def sum_with_horovod() -> tuple[float, int, int, int]:
    import horovod.torch as hvd  # type: ignore[import-not-found,import-untyped,unused-ignore]
    import torch

    hvd.init()
    total = hvd.allreduce(torch.ones(1) * (hvd.rank() + 1), op=hvd.Sum)
    place = (total.item(), hvd.rank(), hvd.local_rank(), hvd.cross_rank())
    hvd.shutdown()
    hvd.init()  # the store has been emptied, so that ranks can meet again
    hvd.shutdown()
    return place


@phalanx.function(workers=2)
def train_with_keras() -> tuple[float, int]:
    """A step of training under TensorFlow's strategy; the weights of all workers are the same after it."""
    import keras  # type: ignore[import-not-found,import-untyped,unused-ignore]
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    worker = strategy.cluster_resolver.task_id
    with strategy.scope():
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros", use_bias=False)])

    @tf.function  # type: ignore[untyped-decorator,unused-ignore]
    def step() -> None:
        def replica() -> None:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((model(tf.ones([1, 1])) - (worker + 1.0)) ** 2)
            (gradient,) = tape.gradient(loss, model.trainable_variables)
            summed = tf.distribute.get_replica_context().all_reduce("sum", gradient)
            model.trainable_variables[0].value.assign_sub(0.25 * summed)

        strategy.run(replica)

    step()
    return float(model.trainable_variables[0].numpy()[0, 0]), strategy.num_replicas_in_sync


HOROVOD_PLACES = [(10.0, 0, 0, 0), (10.0, 1, 1, 0), (10.0, 2, 0, 1), (10.0, 3, 1, 1)]
ENGINES = ("slurm", "mpi", "ray")


def test_tensorflow_on_two_nodes() -> None:
    python = python_with("tensorflow", "tensorflow-cpu")
    assert sum_with_tensorflow.on("local", nodes=2, python=python)() == [([2.0, 2.0], 2)] * 2


def test_horovod_on_two_nodes() -> None:
    python = python_with("horovod", "horovod")
    assert sum_with_horovod.on("local", nodes=2, python=python)() == HOROVOD_PLACES


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_keras_on_every_engine(on: On) -> None:
    python = python_with("keras", "keras tensorflow-cpu")
    train = train_with_keras.options(python=python, agent_python=sys.executable)
    assert on(train)() == [(1.5, 2)] * 2  # 0.25 of 2 and of 4


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_horovod_on_every_engine(on: On) -> None:
    python = python_with("horovod", "horovod")
    assert on(sum_with_horovod.options(python=python, agent_python=sys.executable))() == HOROVOD_PLACES


def test_a_parameter_server_on_another_node_ends_when_the_chief_is_done(tmp_path: Path) -> None:
    python = python_with("tensorflow", "tensorflow-cpu")
    nodes = ("--on", "local", "--with", "nodes=3")
    roles = ("--roles", "chief=1,worker=1,ps=1", "--python", python, *nodes, "train.py")
    done = run(tmp_path, *roles, script=PARAMETER_SERVER, PYTHONPATH=SOURCE)
    assert done.status == 0, done.err
    assert said(done.out)["counted 6.0"] == [0]
    assert [done.exit(rank)["by"] for rank in (1, 2)] == ["end of service"] * 2
    assert done.manifest()["roles"] == ["chief:0", "worker:0", "ps:0"]


def test_virtual_devices_on_an_engine(tmp_path: Path) -> None:
    python = python_with("tensorflow", "tensorflow-cpu")
    asked = ("--virtual-devices", "3", "--python", python, "--on", "local", "train.py")
    done = run(tmp_path, *asked, script=MIRRORED, PYTHONPATH=SOURCE)
    assert done.status == 0, done.err
    assert "replicas 3 __main__" in done.out
