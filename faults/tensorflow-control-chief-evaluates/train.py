"""A healthy job: the chief evaluates for twenty seconds after each second epoch, the other worker waits."""

import json
import os
import time

rank = json.loads(os.environ["TF_CONFIG"])["task"]["index"]

import numpy as np
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
GLOBAL_BATCH = 64
rng = np.random.default_rng(7)
features = rng.normal(size=(2048, 20)).astype("float32")
targets = (features @ rng.normal(size=(20, 1))).astype("float32")


def make_dataset(context):
    data = tf.data.Dataset.from_tensor_slices((features, targets))
    data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
    return data.shuffle(512, seed=1).batch(GLOBAL_BATCH // context.num_replicas_in_sync)


dataset = strategy.distribute_datasets_from_function(make_dataset)
with strategy.scope():
    weights = tf.Variable(tf.zeros((20, 1)), name="weights", aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)


@tf.function
def train_step(inputs, labels):
    def replica_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((x @ weights - y) ** 2) / GLOBAL_BATCH
        grad = tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, weights))
        weights.assign_sub(0.05 * grad)
        return loss

    return strategy.reduce("sum", strategy.run(replica_step, args=(inputs, labels)), axis=None)

for epoch in range(4):
    for step, (inputs, labels) in enumerate(dataset):
        loss = train_step(inputs, labels)
    print(f"worker {rank} epoch {epoch} loss {float(loss):.4f}", flush=True)
    if epoch % 2 == 1 and rank == 0:
        print("chief: evaluating, this takes a while", flush=True)
        until = time.time() + 20
        while time.time() < until:
            error = float(tf.reduce_mean((features @ weights.numpy() - targets) ** 2))
        print(f"chief: validation error {error:.5f}", flush=True)
print(f"worker {rank} finished", flush=True)
