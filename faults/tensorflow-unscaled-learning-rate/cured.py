"""The gradients are averaged."""

import numpy as np
import tensorflow as tf

REPLICAS = 4
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * REPLICAS)
strategy = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(REPLICAS)])
rng = np.random.default_rng(0)
features = rng.normal(size=(2048, 16)).astype("float32")
targets = features.sum(axis=1, keepdims=True)
data = tf.data.Dataset.from_tensor_slices((features, targets)).batch(128)
dataset = strategy.experimental_distribute_dataset(data)
with strategy.scope():
    weights = tf.Variable(tf.zeros((16, 1)), aggregation=tf.VariableAggregation.MEAN)
print("replicas:", strategy.num_replicas_in_sync)


@tf.function
def train_step(batch):
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights - y) ** 2)
        grad = tf.distribute.get_replica_context().all_reduce("mean", tape.gradient(loss, weights))
        weights.assign_sub(0.4 * grad)
        return loss

    return strategy.reduce("mean", strategy.run(step, args=batch), axis=None)


for epoch in range(6):
    for batch in dataset:
        loss = train_step(batch)
    print(f"epoch {epoch} loss {float(loss):.4f}")
