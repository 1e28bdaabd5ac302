"""Horovod and TensorFlow: a worker recorded among others, and again alone, bit for bit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ..run.jobs import run
from ..run.test_other_frameworks import python_with
from .jobs import record, replay

pytestmark = [pytest.mark.job, pytest.mark.timeout(600)]

HOROVOD = """\
import torch, horovod.torch as hvd
hvd.init()
torch.manual_seed(hvd.rank())
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
print("told", hvd.broadcast_object({"lr": 0.01, "names": ["a"]}, 0), flush=True)
for step in range(5):
    optimizer.zero_grad()
    inputs = torch.randn(8, 16)
    loss = (model(inputs) - inputs.sum(1, keepdim=True)).pow(2).mean()
    loss.backward()
    optimizer.step()
gathered = hvd.allgather(torch.randn(hvd.rank() + 1, 3))
print("end", hvd.rank(), hvd.size(), list(gathered.shape), gathered.sum().item(), loss.item())
print("parameters", sum(one.detach().double().sum().item() for one in model.parameters()))
"""
TENSORFLOW = """\
import tensorflow as tf
tf.random.set_seed(3)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
with strategy.scope():
    weight, bias = tf.Variable(tf.random.normal([2000, 1])), tf.Variable([0.5])
def one(inputs):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(inputs, weight) + bias - tf.reduce_sum(inputs, 1, keepdims=True)) ** 2)
    context = tf.distribute.get_replica_context()
    slopes = context.all_reduce("mean", tape.gradient(loss, [weight, bias]))
    weight.assign_sub(0.001 * slopes[0])
    bias.assign_sub(0.001 * slopes[1])
    return loss
@tf.function
def step(inputs):
    return strategy.run(one, args=(inputs,))
for number in range(5):
    loss = step(tf.random.stateless_normal([8, 2000], seed=[number, rank]))
    print("step", number, strategy.experimental_local_results(loss)[0].numpy(), flush=True)
print("end", rank, float(tf.reduce_sum(tf.cast(weight.read_value(), tf.float64))), strategy.num_replicas_in_sync)
"""


KERAS_FIT = """\
import os
os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Keras 3 fails under this strategy by itself
import numpy, tensorflow as tf
tf.keras.utils.set_random_seed(3)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
data = numpy.random.default_rng(5).standard_normal((64, 600)).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((data, data.sum(1, keepdims=True))).shuffle(64, seed=1).batch(16)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
history = model.fit(dataset, epochs=2, verbose=0)
print("end", history.history["loss"], flush=True)
print("parameters", float(sum(tf.reduce_sum(tf.cast(one, tf.float64)) for one in model.trainable_variables)))
"""


@pytest.mark.parametrize(
    ("framework", "package", "script"),
    [
        ("horovod", "horovod", HOROVOD),
        ("tensorflow", "tensorflow-cpu", TENSORFLOW),
        ("tensorflow", "tensorflow-cpu", KERAS_FIT),
    ],
    ids=["horovod", "tensorflow", "keras-fit"],
)
def test_a_worker_repeats_alone(tmp_path: Path, framework: str, package: str, script: str) -> None:
    python = python_with(framework, package)
    if script is KERAS_FIT:
        look = [python, "-c", "import importlib.util as u; raise SystemExit(u.find_spec('tf_keras') is None)"]
        if subprocess.run(look, check=False).returncode:
            pytest.skip("needs tf_keras beside TensorFlow: pip install --no-deps tf_keras")
    (tmp_path / "train.py").write_text(script)
    done = record(tmp_path, "full", 2, options=("--python", python))
    assert done.status == 0, done.err
    assert "recording stopped" not in done.err
    again = replay(tmp_path, "bundle", "--rank", "1", "--python", python)
    assert again.status == 0, again.out + again.err
    assert "[same, bitwise]" in again.out
    said = (done.rank(1) / "output.log").read_text().splitlines()
    wanted = [line for line in said if line.startswith(("end", "parameters", "step"))]
    assert wanted
    for line in wanted:
        assert line in again.out.splitlines()


@pytest.mark.parametrize(
    ("mode", "script", "variables", "told"),
    [
        ("ring", TENSORFLOW, {}, "tensorflow cannot be recorded so"),
        ("full", "import horovod.tensorflow as hvd\nhvd.init()\n", {}, "horovod.tensorflow cannot be recorded so"),
        ("full", "import horovod.keras as hvd\nhvd.init()\n", {}, "horovod.keras cannot be recorded so"),
        (
            "light",
            "import jax, keras\njax.distributed.initialize()\nkeras.distribution\n",
            {"KERAS_BACKEND": "jax"},
            "cannot be recorded so",
        ),
        ("full", "import jax\njax.distributed.initialize()\n", {}, "jax cannot be recorded so"),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_the_job_starts(
    tmp_path: Path, mode: str, script: str, variables: dict[str, str], told: str
) -> None:
    done = run(tmp_path, f"--record={mode}", "-n", "2", "train.py", script=script, **variables)
    assert done.status == 2
    assert told in done.err
    assert not (tmp_path / "bundle").exists()
