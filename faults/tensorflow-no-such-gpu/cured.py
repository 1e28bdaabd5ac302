"""The device is chosen from those that are there."""

import numpy as np
import tensorflow as tf

tf.config.set_soft_device_placement(False)
DEVICE = "/GPU:0" if tf.config.list_physical_devices("GPU") else "/CPU:0"
rng = np.random.default_rng(3)
images = rng.normal(size=(256, 32)).astype("float32")
targets = rng.normal(size=(256, 1)).astype("float32")
print("loaded", len(images), "rows")

with tf.device(DEVICE):
    kernel = tf.Variable(tf.zeros((32, 1)), name="kernel")

for step in range(20):
    with tf.device(DEVICE), tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.constant(images) @ kernel - tf.constant(targets)) ** 2)
    kernel.assign_sub(0.1 * tape.gradient(loss, kernel))
    if step % 5 == 0:
        print(f"step {step} loss {float(loss):.4f}")
