"""The step runs on every replica through strategy.run."""

import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
rng = np.random.default_rng(0)
features = rng.normal(size=(512, 8)).astype("float32")
targets = features.sum(axis=1, keepdims=True)
dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((features, targets)).batch(64))
with strategy.scope():
    weights = tf.Variable(tf.zeros((8, 1)), aggregation=tf.VariableAggregation.MEAN)
print("replicas:", strategy.num_replicas_in_sync)


def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(x, weights) - y) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for epoch in range(3):
    for x, y in dataset:
        loss = strategy.reduce("mean", strategy.run(step, args=(x, y)), axis=None)
    print(f"epoch {epoch} loss {float(loss):.4f}")
