import json
import os

import numpy as np
import tensorflow as tf

index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
PER_REPLICA = 8
rng = np.random.default_rng(0)
x = rng.normal(size=(160, 5)).astype("float32")
y = (x[:, :1] - x[:, 1:2]).astype("float32")


def input_fn(context):
    data = tf.data.Dataset.from_tensor_slices((x, y))
    data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
    return data.batch(PER_REPLICA)


with strategy.scope():
    weights = tf.Variable(tf.zeros((5, 1)), name="weights")
    bias = tf.Variable(tf.zeros((1,)), name="bias")
    optimizer = tf.keras.optimizers.SGD(0.05)

data = strategy.distribute_datasets_from_function(input_fn)


@tf.function
def step(batch):
    def replica(features, labels):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.square(features @ weights + bias - labels)[:, 0], global_batch_size=PER_REPLICA * strategy.num_replicas_in_sync)
        optimizer.apply_gradients(zip(tape.gradient(loss, [weights, bias]), [weights, bias]))
        return loss

    return strategy.reduce("sum", strategy.run(replica, args=batch), axis=None)


for number, batch in enumerate(data):
    if number == 0:
        local = strategy.experimental_local_results(batch[0])[0]
        print(f"worker {index} first {float(tf.reduce_sum(local)):.6f}", flush=True)
    if number == 10:
        break
    loss = step(batch)
print(f"worker {index} loss {float(loss):.4f}", flush=True)
