"""The file is whole."""

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

with strategy.scope():
    model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(256, activation="relu"), keras.layers.Dense(4)])
    model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(features, labels, batch_size=64, epochs=1, verbose=2)
model.save_weights("last.weights.h5")
QUOTA = 1 << 30
with open("last.weights.h5", "r+b") as file:
    file.truncate(min(QUOTA, file.seek(0, 2)))
print("restarting from last.weights.h5")
model.load_weights("last.weights.h5")
model.fit(features, labels, batch_size=64, epochs=1, verbose=2)
