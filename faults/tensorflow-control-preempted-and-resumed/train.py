"""A healthy job that is stopped after two epochs and resumed from its checkpoint."""

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


checkpoint = tf.train.Checkpoint(weights=weights)
folder = "checkpoints" if rank == 0 else f"unused-{rank}"
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
latest = tf.train.latest_checkpoint("checkpoints")
if latest:
    checkpoint.restore(latest)
    print(f"worker {rank} resumed from {latest}", flush=True)
for epoch in range(4):
    for step, (inputs, labels) in enumerate(dataset):
        loss = train_step(inputs, labels)
    print(f"worker {rank} epoch {epoch} loss {float(loss):.4f}", flush=True)
    manager.save()
    if epoch == 1 and not latest:
        print(f"worker {rank}: preemption notice, checkpoint written, leaving", flush=True)
        break
print(f"worker {rank} finished", flush=True)
