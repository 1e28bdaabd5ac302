"""The script imports horovod.tensorflow; this Horovod was built for PyTorch only."""

import numpy as np

import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
rng = np.random.default_rng(hvd.rank())
features = tf.constant(rng.normal(size=(512, 8)), tf.float32)
targets = tf.reduce_sum(features, axis=1, keepdims=True)
weights = tf.Variable(tf.zeros((8, 1)))
hvd.broadcast_variables([weights], root_rank=0)
for step in range(50):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((features @ weights - targets) ** 2)
    tape = hvd.DistributedGradientTape(tape)
    weights.assign_sub(0.1 * tape.gradient(loss, [weights])[0])
    if step % 10 == 0 and hvd.rank() == 0:
        print(f"step {step} loss {float(loss):.4f}", flush=True)
