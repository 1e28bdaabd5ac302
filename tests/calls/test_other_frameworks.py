"""Functions of TensorFlow and Horovod on two nodes: TF_CONFIG and Horovod's variables are the agents' work."""

from __future__ import annotations

import pytest

import phalanx
from tests.run.test_other_frameworks import python_with

pytestmark = [pytest.mark.job, pytest.mark.timeout(600)]


def sum_with_tensorflow() -> tuple[list[float], int]:
    import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]

    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    @tf.function  # type: ignore[untyped-decorator,unused-ignore]
    def reduce() -> object:
        return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.ones([2])))

    return reduce().numpy().tolist(), strategy.num_replicas_in_sync  # type: ignore[attr-defined]


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


def test_tensorflow_on_two_nodes() -> None:
    python = python_with("tensorflow", "tensorflow-cpu")
    train = phalanx.function(workers=2, python=python)(sum_with_tensorflow)
    assert train.on("local", nodes=2, python=python)() == [([2.0, 2.0], 2)] * 2


def test_horovod_on_two_nodes() -> None:
    python = python_with("horovod", "horovod")
    train = phalanx.function(workers=4)(sum_with_horovod)
    assert train.on("local", nodes=2, python=python)() == [
        (10.0, 0, 0, 0),
        (10.0, 1, 1, 0),
        (10.0, 2, 0, 1),
        (10.0, 3, 1, 1),
    ]
