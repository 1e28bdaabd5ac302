"""The weights of the inner, single-device model are saved."""

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


def build():
    return keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4)])


class ReplicaWrapper(keras.Model):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.scale = keras.layers.Rescaling(1.0)

    def call(self, inputs):
        return self.inner(self.scale(inputs))


with strategy.scope():
    wrapped = ReplicaWrapper(build())
    wrapped.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
wrapped.fit(features, labels, batch_size=64, epochs=2, verbose=2)
wrapped.inner.save_weights("best.weights.h5")
print("saved best.weights.h5")
single = build()
single.load_weights("best.weights.h5")
print("restored", single.predict(features[:4], verbose=0).shape)
