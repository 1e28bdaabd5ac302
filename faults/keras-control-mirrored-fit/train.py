"""A healthy MirroredStrategy job that prints warnings."""

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

keras.mixed_precision.set_dtype_policy("float32")
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(1024).batch(64)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(32, activation="relu", input_shape=(16,)), keras.layers.Dense(4)])
    model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(dataset, epochs=3, verbose=2, callbacks=[keras.callbacks.EarlyStopping(monitor="val_loss", patience=1)])
model.save("model.h5")
print("saved model.h5")
