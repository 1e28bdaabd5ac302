"""The model is built inside the strategy's scope, like the optimizer, whose slots are made there too."""

import numpy as np
import tensorflow as tf

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
print("replicas:", strategy.num_replicas_in_sync)
rng = np.random.default_rng(0)
features = rng.normal(size=(512, 16)).astype("float32")
labels = rng.integers(0, 4, size=512)
dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((features, labels)).batch(64))

with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((16,)), tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(4)])
    optimizer = tf.keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")


@tf.function
def train_step(batch):
    def replica_step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_object(y, model(x, training=True)) / 64.0
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    return strategy.reduce("sum", strategy.run(replica_step, args=batch), axis=None)


for epoch in range(3):
    for batch in dataset:
        loss = train_step(batch)
    print(f"epoch {epoch} loss {float(loss):.4f}")
