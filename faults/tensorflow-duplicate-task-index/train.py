"""Two workers with TF_CONFIG; the index was copied from the first node and never changed."""

import json
import os

rank = json.loads(os.environ["TF_CONFIG"])["task"]["index"]

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
print(f"worker {rank}: {strategy.num_replicas_in_sync} replicas in sync", flush=True)
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
    bias = tf.Variable(tf.zeros((1,)), name="bias", aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)


@tf.function
def train_step(inputs, labels):
    def replica_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((x @ weights + bias - y) ** 2) / GLOBAL_BATCH
        grads = tape.gradient(loss, [weights, bias])
        grads = tf.distribute.get_replica_context().all_reduce("sum", grads)
        weights.assign_sub(0.05 * grads[0])
        bias.assign_sub(0.05 * grads[1])
        return loss

    per_replica = strategy.run(replica_step, args=(inputs, labels))
    return strategy.reduce("sum", per_replica, axis=None)


for epoch in range(3):
    for step, (inputs, labels) in enumerate(dataset):
        loss = train_step(inputs, labels)
        if step % 10 == 0:
            print(f"epoch {epoch} step {step} loss {float(loss):.4f}", flush=True)
print("training finished", flush=True)
