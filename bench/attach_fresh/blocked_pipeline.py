# launcher: tensorflow 2
# truth: 1
"""Worker 1's input pipeline calls a Python function that waits for a pipe nobody writes to."""
import json, os, time

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import tensorflow as tf

MODE = os.environ["MODE"]
INDEX = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
strategy = tf.distribute.MultiWorkerMirroredStrategy()


def samples():
    number = 0
    while True:
        number += 1
        if number == 40:
            open(f"ready{INDEX}", "w").close()
        if INDEX == 1 and number > 40:
            if MODE == "stall":
                with open("shards") as file:
                    file.read()
            if MODE == "slow":
                time.sleep(0.3)
        yield [float(number % 3)] * 4, [1.0]


signature = (tf.TensorSpec((4,), tf.float32), tf.TensorSpec((1,), tf.float32))
data = tf.data.Dataset.from_generator(samples, output_signature=signature).batch(4)
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
batches = iter(strategy.experimental_distribute_dataset(data.with_options(options)))
with strategy.scope():
    weights = tf.Variable(tf.zeros((4, 1)))


def gradient(features, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(features, weights) - labels) ** 2)
    context = tf.distribute.get_replica_context()
    weights.assign_sub(0.01 * context.all_reduce("mean", tape.gradient(loss, weights)))
    return loss


@tf.function
def train_step(batch):
    return strategy.run(gradient, args=batch)


while True:
    train_step(next(batches))
    time.sleep(0.02)
