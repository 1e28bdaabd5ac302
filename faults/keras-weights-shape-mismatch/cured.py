"""The resumed model has the head that the weights were saved from."""

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


def build(classes):
    return keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(classes)])


CLASSES = 4
with strategy.scope():
    model = build(4)
    model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(features, labels, batch_size=64, epochs=2, verbose=2)
model.save_weights("epoch2.weights.h5")
print("saved epoch2.weights.h5")
with strategy.scope():
    resumed = build(CLASSES)
    resumed.load_weights("epoch2.weights.h5")
    resumed.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
resumed.fit(features, labels, batch_size=64, epochs=1, verbose=2)
