"""The model is built before the strategy exists and compiled inside its scope."""

import keras
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
print("replicas:", strategy.num_replicas_in_sync)

rng = np.random.default_rng(0)
features = rng.normal(size=(1024, 16)).astype("float32")
labels = rng.integers(0, 4, size=1024)

model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4)])
with strategy.scope():
    optimizer = keras.optimizers.Adam(1e-3)
    model.compile(optimizer=optimizer, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(features, labels, batch_size=64, epochs=3, verbose=2)
