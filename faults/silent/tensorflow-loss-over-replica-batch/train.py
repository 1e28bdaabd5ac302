import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
GLOBAL_BATCH = 32
rng = np.random.default_rng(3)
features = rng.normal(size=(320, 10)).astype("float32")
targets = features.sum(1, keepdims=True).astype("float32")


def dataset_fn(context):
    data = tf.data.Dataset.from_tensor_slices((features, targets))
    data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
    return data.batch(context.get_per_replica_batch_size(GLOBAL_BATCH))


dataset = strategy.distribute_datasets_from_function(dataset_fn)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((10,)), tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function
def train_step(batch):
    def step_fn(x, y):
        with tf.GradientTape() as tape:
            per_example = tf.reduce_sum(tf.square(model(x, training=True) - y), axis=1)
            loss = tf.reduce_mean(per_example)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss, tf.reduce_mean(per_example)

    total, mean = strategy.run(step_fn, args=batch)
    return strategy.reduce("sum", total, axis=None), strategy.reduce("mean", mean, axis=None)


for step, batch in enumerate(dataset):
    loss, mean = train_step(batch)
    if step == 0:
        print(f"loss is {float(loss / mean):.1f} times the mean over the batch", flush=True)
print(f"final loss {float(loss):.4f}", flush=True)
