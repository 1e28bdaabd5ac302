"""The width is a multiple of the number of devices."""

import keras
import numpy as np

devices = keras.distribution.list_devices()
mesh = keras.distribution.DeviceMesh(shape=(1, 4), axis_names=("batch", "model"), devices=devices)
layout = keras.distribution.LayoutMap(mesh)
layout[".*hidden/kernel"] = (None, "model")
keras.distribution.set_distribution(keras.distribution.ModelParallel(layout_map=layout, batch_dim_name="batch"))
print("mesh", mesh.shape, "over", len(devices), "devices")
WIDTH = 32

rng = np.random.default_rng(0)
features = rng.normal(size=(1024, 16)).astype("float32")
labels = rng.integers(0, 4, size=1024)

model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(WIDTH, activation="relu", name="hidden"), keras.layers.Dense(4)])
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(features, labels, batch_size=64, epochs=2, verbose=2)
