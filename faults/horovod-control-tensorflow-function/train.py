"""The step is compiled; rank 0 saves for some seconds while the others wait."""

import os
import signal
import time

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

hvd.init()
rng = np.random.default_rng(hvd.rank())
weights = tf.Variable(tf.zeros((8, 1)))
hvd.broadcast_variables([weights], root_rank=0)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weights - tf.reduce_sum(x, 1, keepdims=True)) ** 2)
    tape = hvd.DistributedGradientTape(tape)
    (gradient,) = tape.gradient(loss, [weights])
    weights.assign_sub(0.05 * gradient)
    return loss


for step in range(20):
    x = rng.normal(size=(16, 8)).astype("float32")
    loss = float(train_step(tf.constant(x)))
    if step == 10 and hvd.rank() == 0:
        print("saving, which takes a while", flush=True)
        time.sleep(4)
    print(f"step {step} loss {loss:.4f}", flush=True)
    time.sleep(0.05)
print("finished", flush=True)
