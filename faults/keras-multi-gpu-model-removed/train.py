"""The script wraps its model with an API that Keras 3 does not have."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
features = rng.normal(size=(1024, 16)).astype("float32")
labels = rng.integers(0, 4, size=1024)

model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4)])
print("parameters:", model.count_params())
parallel_model = keras.utils.multi_gpu_model(model, gpus=2)
parallel_model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
parallel_model.fit(features, labels, batch_size=64, epochs=2, verbose=2)
