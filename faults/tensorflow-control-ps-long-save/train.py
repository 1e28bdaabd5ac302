"""A healthy ParameterServerStrategy job with a long pause for saving while servers and workers wait."""

import json
import os
import time

import numpy as np
import tensorflow as tf

role = json.loads(os.environ["TF_CONFIG"])["task"]["type"]
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if role in ("ps", "worker"):
    server = tf.distribute.Server(resolver.cluster_spec(), job_name=role, task_index=0, protocol="grpc", start=True)
    print(f"{role} is up", flush=True)
    while not os.path.exists("finished"):
        time.sleep(0.5)
    os._exit(0)

strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    weights = tf.Variable(tf.zeros((8, 1)))


def dataset_fn():
    features = np.random.default_rng(0).normal(size=(512, 8)).astype("float32")
    return tf.data.Dataset.from_tensor_slices((features, features.sum(axis=1, keepdims=True))).repeat().batch(64)


@tf.function
def step_fn(iterator):
    x, y = next(iterator)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weights - y) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


iterator = iter(coordinator.create_per_worker_dataset(dataset_fn))
for epoch in range(5):
    for _ in range(20):
        result = coordinator.schedule(step_fn, args=(iterator,))
    coordinator.join()
    print(f"epoch {epoch} loss {float(result.fetch()):.4f}", flush=True)
    if epoch == 2:
        print("saving, this takes a while", flush=True)
        time.sleep(12)
print("training finished", flush=True)
open("finished", "w").close()
os._exit(0)
