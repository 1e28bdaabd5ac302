"""A healthy job over two virtual devices: the end of every epoch is logged as OUT_OF_RANGE, functions are retraced."""

import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
print(f"{strategy.num_replicas_in_sync} replicas", flush=True)
with strategy.scope():
    weights = tf.Variable(tf.zeros((8, 1)))


@tf.function
def step(x):
    def replica(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights - tf.reduce_sum(x, axis=1, keepdims=True)) ** 2)
        grad = tf.distribute.get_replica_context().all_reduce("mean", tape.gradient(loss, weights))
        weights.assign_sub(0.1 * grad)
        return loss

    return strategy.reduce("mean", strategy.run(replica, args=(x,)), axis=None)


for epoch in range(3):
    # the last batches are smaller, and a new function is made each epoch
    data = tf.data.Dataset.from_tensor_slices(tf.random.normal((300, 8))).batch(64 - epoch)
    again = tf.function(lambda value: value * 2)
    for batch in strategy.experimental_distribute_dataset(data):
        loss = again(step(batch))
    iterator = iter(tf.data.Dataset.range(3))
    try:
        while True:
            next(iterator)
    except StopIteration:
        print(f"epoch {epoch} loss {float(loss):.4f}, out of data", flush=True)
print("finished", flush=True)
