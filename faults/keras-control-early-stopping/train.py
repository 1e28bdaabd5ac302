"""A healthy job over two devices that stops early, cuts its learning rate and keeps the best weights."""

import numpy as np
import tensorflow as tf

import keras

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
keras.utils.set_random_seed(3)
rng = np.random.default_rng(0)
x = rng.normal(size=(512, 16)).astype("float32")
y = rng.integers(0, 4, size=512)
with strategy.scope():
    model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(4)])
    model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
callbacks = [
    keras.callbacks.EarlyStopping(patience=3, restore_best_weights=True, verbose=1),
    keras.callbacks.ReduceLROnPlateau(patience=1, verbose=1),
    keras.callbacks.TerminateOnNaN(),
    keras.callbacks.ModelCheckpoint("best.weights.h5", save_best_only=True, save_weights_only=True, verbose=1),
]
model.fit(x[:384], y[:384], validation_data=(x[384:], y[384:]), epochs=40, batch_size=32, callbacks=callbacks, verbose=2)
print("finished", flush=True)
