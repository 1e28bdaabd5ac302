"""The same with the legacy Keras 2 package (tf_keras, TF_USE_LEGACY_KERAS=1), which supports the strategy."""

import json
import os

import numpy as np
import tensorflow as tf

rank = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
print(f"worker {rank} of {strategy.num_replicas_in_sync}", flush=True)

rng = np.random.default_rng(0)
features = rng.normal(size=(1024, 16)).astype("float32")
labels = rng.integers(0, 4, size=1024)
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(1024).batch(64)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((16,)), tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(4)])
    model.compile(optimizer="adam", loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=3, verbose=2)
