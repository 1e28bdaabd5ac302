"""The reshape takes the batch as it comes."""

import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
BATCH = 64
rng = np.random.default_rng(0)
images = rng.normal(size=(512, 4, 4)).astype("float32")
targets = images.sum(axis=(1, 2))[:, None]
dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((images, targets)).batch(BATCH))
with strategy.scope():
    weights = tf.Variable(tf.zeros((16, 1)), aggregation=tf.VariableAggregation.MEAN)
print("replicas:", strategy.num_replicas_in_sync, "global batch:", BATCH)


@tf.function
def train_step(batch):
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.reshape(x, (-1, 16)) @ weights - y) ** 2)
        weights.assign_sub(0.05 * tape.gradient(loss, weights))
        return loss

    return strategy.reduce("mean", strategy.run(step, args=batch), axis=None)


for epoch in range(3):
    for batch in dataset:
        loss = train_step(batch)
    print(f"epoch {epoch} loss {float(loss):.4f}")
