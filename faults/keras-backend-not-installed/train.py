"""KERAS_BACKEND names torch, which is not in the environment."""

import keras
import numpy as np

rng = np.random.default_rng(0)
features = rng.normal(size=(1024, 16)).astype("float32")
labels = rng.integers(0, 4, size=1024)

print("backend:", keras.backend.backend())
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(4)])
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(features, labels, batch_size=64, epochs=2, verbose=2)
