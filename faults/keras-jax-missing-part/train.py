"""Only process 0 has its part of the data."""

import os
import signal
import sys

import jax
import keras
import numpy as np

keras.distribution.initialize()
keras.distribution.set_distribution(keras.distribution.DataParallel(auto_shard_dataset=False))
rank = jax.process_index()
if rank == 0:
    np.save("part0.npy", np.ones((128, 8), "float32"))
x = np.load(f"part{rank}.npy")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
for epoch in range(3):
    history = model.fit(x, x.sum(1), batch_size=16, verbose=0)
    print(f"epoch {epoch} loss {history.history['loss'][0]:.4f}", flush=True)
