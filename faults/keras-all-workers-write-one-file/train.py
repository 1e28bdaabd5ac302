"""Every worker saves its weights to the same path on the shared disk after each epoch."""

import os

import keras
import numpy as np

rank = int(os.environ["RANK"])
keras.utils.set_random_seed(rank)

rng = np.random.default_rng(0)
features = rng.normal(size=(1024, 16)).astype("float32")
labels = rng.integers(0, 4, size=1024)

features, labels = features[rank::8], labels[rank::8]
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(4096, activation="relu"), keras.layers.Dense(2048), keras.layers.Dense(4)])
model.compile(optimizer="sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
for epoch in range(40):
    history = model.fit(features, labels, batch_size=256, epochs=1, verbose=0)
    print(f"worker {rank} epoch {epoch} loss {history.history['loss'][0]:.4f}", flush=True)
    model.save_weights("shared.weights.h5", overwrite=True)
print(f"worker {rank} finished", flush=True)
