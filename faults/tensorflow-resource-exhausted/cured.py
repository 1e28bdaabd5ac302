"""The batch is small enough for the matrix."""

import numpy as np
import tensorflow as tf

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
BATCH = 800_000
rng = np.random.default_rng(0)
features = rng.normal(size=(BATCH, 8)).astype("float32")
with strategy.scope():
    projection = tf.Variable(tf.random.stateless_normal((8, 4), (1, 2)), aggregation=tf.VariableAggregation.MEAN)
print("replicas:", strategy.num_replicas_in_sync, "rows:", len(features))


@tf.function
def train_step(batch):
    def replica_step(x):
        with tf.GradientTape() as tape:
            z = x @ projection
            similarity = tf.matmul(z, z, transpose_b=True)
            loss = tf.reduce_mean(tf.nn.softplus(similarity))
        projection.assign_sub(0.1 * tape.gradient(loss, projection))
        return loss

    return strategy.reduce("mean", strategy.run(replica_step, args=(batch,)), axis=None)


data = tf.data.Dataset.from_tensor_slices(features).batch(2_000).take(5)
for step, batch in enumerate(strategy.experimental_distribute_dataset(data)):
    print(f"step {step} loss {float(train_step(batch)):.4f}")
