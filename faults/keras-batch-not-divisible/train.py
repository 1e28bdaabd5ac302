"""Data-parallel training over four devices with a batch of 30."""

import keras
import numpy as np

devices = keras.distribution.list_devices()
print("devices:", devices)
keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices))

rng = np.random.default_rng(0)
features = rng.normal(size=(1024, 16)).astype("float32")
labels = rng.integers(0, 4, size=1024)

BATCH = 30
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4)])
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(features, labels, batch_size=BATCH, epochs=2, verbose=2)
