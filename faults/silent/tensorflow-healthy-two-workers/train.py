import json
import os

import numpy as np
import tensorflow as tf

worker = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
GLOBAL = 32
rng = np.random.default_rng(1)
x = rng.normal(size=(320, 8)).astype("float32")
y = np.sin(x.sum(1, keepdims=True)).astype("float32")


def pipeline(context):
    data = tf.data.Dataset.from_tensor_slices((x, y)).shard(context.num_input_pipelines, context.input_pipeline_id)
    return data.shuffle(64, seed=worker).batch(context.get_per_replica_batch_size(GLOBAL))


data = strategy.distribute_datasets_from_function(pipeline)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.Adam(0.01)


@tf.function
def step(batch):
    def fn(features, labels):
        with tf.GradientTape() as tape:
            losses = tf.reduce_sum(tf.square(model(features, training=True) - labels), axis=1)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=GLOBAL)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    return strategy.reduce("sum", strategy.run(fn, args=batch), axis=None)


for number, batch in enumerate(data):
    loss = step(batch)
print(f"worker {worker} steps {number + 1} loss {float(loss):.4f}", flush=True)
