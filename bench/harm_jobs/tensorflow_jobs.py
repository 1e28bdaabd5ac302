"""Healthy TensorFlow jobs: `tensorflow_jobs.py CASE`. Lines that begin with `=` must be the same by any launcher."""

import json
import os
import sys
import time

import numpy as np
import tensorflow as tf

TASK = json.loads(os.environ.get("TF_CONFIG") or '{"task": {"type": "worker", "index": 0}}')["task"]


def data(rows=128, seed=0):
    x = np.random.default_rng(seed).normal(size=(rows, 8)).astype("float32")
    return tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True)))


class Workers:
    """MultiWorkerMirroredStrategy with one linear model."""

    def __init__(self):
        self.strategy = tf.distribute.MultiWorkerMirroredStrategy()
        with self.strategy.scope():
            self.weights = tf.Variable(tf.zeros((8, 1)))

    def replica(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ self.weights - y) ** 2)
        gradient = tape.gradient(loss, self.weights)
        self.weights.assign_sub(0.05 * tf.distribute.get_replica_context().all_reduce("mean", gradient))
        return loss

    def step(self, x, y):
        return self.strategy.reduce("mean", self.strategy.run(self.replica, (x, y)), axis=None)


def loop():
    job = Workers()
    step = tf.function(job.step)
    for number, (x, y) in enumerate(data(seed=TASK["index"]).batch(8)):
        print(f"= {number} {float(step(x, y)):.6f}")


def eager():
    job = Workers()
    for number, (x, y) in enumerate(data(32).batch(8)):
        print(f"= {number} {float(job.step(x, y)):.6f}")


def distributed_dataset():
    job = Workers()
    step = tf.function(job.step)
    for _ in range(2):
        for x, y in job.strategy.experimental_distribute_dataset(data().batch(16)):
            loss = step(x, y)
        print(f"= {float(loss):.6f}")


def whole_epoch():
    job = Workers()
    parts = iter(job.strategy.experimental_distribute_dataset(data().repeat().batch(16)))

    @tf.function
    def epoch(parts):
        total = 0.0
        for _ in tf.range(8):
            total += job.step(*next(parts))
        return total

    print(f"= {float(epoch(parts)):.6f}")


def checkpoints():
    job = Workers()
    step = tf.function(job.step)
    saved = tf.train.CheckpointManager(tf.train.Checkpoint(weights=job.weights), f"saved-{TASK['index']}", 2)
    for number, (x, y) in enumerate(data(64).batch(8)):
        step(x, y)
        if number % 3 == 2:
            saved.save()
    saved.restore_or_initialize()
    print(f"= {float(tf.reduce_sum(job.weights)):.6f} {len(saved.checkpoints)}")


def python_in_graph():
    job = Workers()

    def prepare(x, y):
        return tf.ensure_shape(tf.py_function(lambda a: a * 2, [x], tf.float32), (8,)), y

    step = tf.function(job.step)
    for x, y in data(64).map(prepare, num_parallel_calls=2).batch(8).prefetch(2):
        loss = step(x, y)
    print(f"= {float(loss):.6f}")


def gathers():
    strategy = Workers().strategy
    values = strategy.run(lambda: tf.fill((2,), float(TASK["index"])))
    print("=", strategy.gather(values, axis=0).numpy().tolist(), strategy.num_replicas_in_sync)


def fit():
    import tf_keras

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf_keras.utils.set_random_seed(1)
    with strategy.scope():
        model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=(8,))])
        model.compile("sgd", "mse")
    history = model.fit(data().batch(16), epochs=2, verbose=0).history
    print("=", [round(loss, 6) for loss in history["loss"]])


def parameter_server():
    here = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if here.task_type in ("worker", "ps"):
        tf.distribute.Server(here.cluster_spec(), job_name=here.task_type, task_index=here.task_id).join()
    strategy = tf.distribute.ParameterServerStrategy(here)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights, steps = tf.Variable(tf.zeros((8, 1))), tf.Variable(0)

    @tf.function
    def step(parts):
        x, y = next(parts)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights - y) ** 2)
        weights.assign_sub(0.02 * tape.gradient(loss, weights))
        steps.assign_add(1)

    parts = iter(coordinator.create_per_worker_dataset(lambda: data().repeat().batch(16).prefetch(2)))
    for _ in range(3):
        for _ in range(10):
            coordinator.schedule(step, args=(parts,))
        coordinator.join()
    print("=", int(steps.numpy()))
    sys.stdout.flush()
    os._exit(0)


def several_parameter_servers():
    parameter_server()


def threads():
    strategy = Workers().strategy
    print("=", strategy.num_replicas_in_sync, tf.config.threading.get_inter_op_parallelism_threads())
    print(
        "=", tf.config.threading.get_intra_op_parallelism_threads(), [d.name for d in tf.config.list_logical_devices()]
    )


def slow_chief():
    job = Workers()
    step = tf.function(job.step)
    for number, (x, y) in enumerate(data(64).batch(8)):
        time.sleep(1.0 if TASK["index"] == 0 and number == 4 else 0.0)
        step(x, y)
    print("= passed")


def fails():
    job = Workers()
    for x, y in data(16).batch(8):
        job.step(x, y)
    print("= leaving", flush=True)
    os._exit(3)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
