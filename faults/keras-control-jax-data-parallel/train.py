"""A healthy Keras job on JAX: data parallel over four devices."""

import numpy as np

import keras

devices = keras.distribution.list_devices("cpu")
print(f"{len(devices)} devices: {devices}", flush=True)
keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices))
keras.utils.set_random_seed(5)
rng = np.random.default_rng(0)
x = rng.normal(size=(1024, 16)).astype("float32")
y = x.sum(axis=1)
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dropout(0.1), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
model.fit(x, y, epochs=4, batch_size=64, verbose=2)
model.save("model.keras")
again = keras.models.load_model("model.keras")
print(f"saved and loaded, loss {again.evaluate(x, y, verbose=0):.4f}", flush=True)
