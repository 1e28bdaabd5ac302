"""Keras on torch: the device of the cluster's GPU nodes is set where there is no GPU."""

import numpy as np

import keras

print(f"keras {keras.__version__} on {keras.backend.backend()}", flush=True)
keras.utils.set_random_seed(1)
with keras.device("cuda:0"):
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(16), keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
x = np.random.default_rng(0).normal(size=(128, 8)).astype("float32")
model.fit(x, x.sum(axis=1), epochs=2, verbose=2)
