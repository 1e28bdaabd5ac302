import json
import os

import numpy as np
import tensorflow as tf


def make_model():
    return tf.keras.Sequential([tf.keras.Input((6,)), tf.keras.layers.Dense(12, activation="tanh"), tf.keras.layers.Dense(1)])


def main():
    worker = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf.keras.utils.set_random_seed(7)
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.Adam(0.01)
        optimizer.build(model.trainable_variables)
    rng = np.random.default_rng(100)
    x = rng.normal(size=(160, 6)).astype("float32")[worker::2]
    y = np.abs(x).sum(1, keepdims=True)

    @tf.function
    def train_step(features, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(features, training=True) - labels)) / strategy.num_replicas_in_sync
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    for step in range(10):
        part = slice(step * 8, step * 8 + 8)
        loss = strategy.reduce("sum", strategy.run(train_step, args=(x[part], y[part])), axis=None)
    total = sum(float(tf.reduce_sum(tf.abs(v))) for v in model.trainable_variables)
    print(f"worker {worker} loss {float(loss.numpy() if hasattr(loss, 'numpy') else 0):.4f} weights {total:.6f}", flush=True)


if __name__ == "__main__":
    main()
