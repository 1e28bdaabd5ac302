"""Variables and data are the strategy's, but the step is called directly: the second replica is never used."""

import time

import tensorflow as tf

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

with strategy.scope():
    weights = tf.Variable(tf.zeros([12, 1]))

x = tf.random.stateless_normal([1024, 12], seed=[1, 2])
y = tf.reduce_sum(x[:, :4], axis=1, keepdims=True)
batches = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1024, seed=5).batch(64).repeat(3)


def step(features, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(features, weights) - labels))
    weights.assign_sub(0.05 * tape.gradient(loss, weights))
    return loss


def train(features, labels):
    return step(features, labels)


used = set()
began = time.perf_counter()
for number, (features, labels) in enumerate(batches):
    losses = strategy.experimental_local_results(train(features, labels))
    used.update(loss.device[-5:] for loss in losses)
    if number % 12 == 0:
        print(f"step {number} loss {float(losses[0]):.4f}", flush=True)
print(f"48 steps in {time.perf_counter() - began:.1f} s, {len(used)} of {strategy.num_replicas_in_sync} replicas computed: {sorted(used)}", flush=True)
