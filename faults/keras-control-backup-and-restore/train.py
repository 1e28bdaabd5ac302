"""A healthy job that is interrupted in its second epoch and picked up again by BackupAndRestore."""

import os
import sys

import numpy as np
import tensorflow as tf

import keras

keras.utils.set_random_seed(3)
rng = np.random.default_rng(0)
x = rng.normal(size=(512, 16)).astype("float32")
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")


class Preemption(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1 and not os.path.exists("preempted"):
            open("preempted", "w").close()
            print("preemption notice: stopping after this epoch, the job will be started again", flush=True)
            raise KeyboardInterrupt


try:
    model.fit(x, x.sum(axis=1), epochs=5, verbose=2, callbacks=[keras.callbacks.BackupAndRestore("backup"), Preemption()])
except KeyboardInterrupt:
    print("interrupted, backup is in place", flush=True)
    sys.exit(0)
print("finished", flush=True)
