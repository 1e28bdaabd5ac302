import json
import os

import numpy as np
import tensorflow as tf

task = json.loads(os.environ["TF_CONFIG"])["task"]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
BATCH = 16
rng = np.random.default_rng(5)
x = rng.normal(size=(200, 4)).astype("float32")
y = (x[:, 0] + 0.8 * rng.normal(size=200) > 0).astype("float32")


def pipeline(context, lo, hi):
    data = tf.data.Dataset.from_tensor_slices((x[lo:hi], y[lo:hi]))
    return data.shard(context.num_input_pipelines, context.input_pipeline_id).batch(BATCH // 2)


train = strategy.distribute_datasets_from_function(lambda c: pipeline(c, 0, 160))
test = strategy.distribute_datasets_from_function(lambda c: pipeline(c, 160, 200))
with strategy.scope():
    w = tf.Variable(tf.zeros((4,)), name="w")


@tf.function
def train_step(batch):
    def fn(features, labels):
        with tf.GradientTape() as tape:
            logits = tf.linalg.matvec(features, w)
            losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=BATCH)
        gradient = tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, w))
        w.assign_sub(0.5 * gradient)
        return loss

    return strategy.reduce("sum", strategy.run(fn, args=batch), axis=None)


@tf.function
def count(batch):
    def fn(features, labels):
        right = tf.equal(tf.linalg.matvec(features, w) > 0, labels > 0.5)
        return tf.reduce_sum(tf.cast(right, tf.float32)), tf.cast(tf.size(labels), tf.float32)

    return strategy.run(fn, args=batch)


for batch in train:
    loss = train_step(batch)
hits = seen = 0.0
for batch in test:
    right, number = count(batch)
    hits += float(strategy.experimental_local_results(right)[0])
    seen += float(strategy.experimental_local_results(number)[0])
accuracy = hits / seen
print(f"worker {task['index']} accuracy {accuracy:.4f} loss {float(loss):.4f}", flush=True)
