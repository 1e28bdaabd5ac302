"""Healthy Keras jobs on the backend of KERAS_BACKEND: `keras_jobs.py CASE`. Lines that begin with `=` must be the same by any launcher."""

import os
import sys

import keras
import numpy as np

BACKEND = keras.backend.backend()


def model(width=8):
    keras.utils.set_random_seed(7)
    return keras.Sequential([keras.Input((width,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)])


def data(rows=128, seed=0):
    x = np.random.default_rng(seed).normal(size=(rows, 8)).astype("float32")
    return x, x.sum(1, keepdims=True)


def told(history):
    for name, values in sorted(history.history.items()):
        print("=", name, [round(float(value), 5) for value in values])


def fit():
    net = model()
    net.compile("sgd", "mse", metrics=["mae"])
    told(net.fit(*data(), batch_size=16, epochs=3, verbose=0, shuffle=False))


def functional():
    keras.utils.set_random_seed(7)
    given = keras.Input((8,))
    net = keras.Model(given, [keras.layers.Dense(1, name="a")(given), keras.layers.Dense(1, name="b")(given)])
    net.compile("adam", ["mse", "mae"])
    x, y = data()
    told(net.fit(x, [y, y], batch_size=32, epochs=2, verbose=0, shuffle=False))


def callbacks():
    class Counting(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            print("= epoch", epoch)

    net = model()
    net.compile("rmsprop", "mse")
    stop = keras.callbacks.EarlyStopping(monitor="loss", patience=1, min_delta=100.0)
    told(net.fit(*data(), epochs=6, verbose=0, shuffle=False, callbacks=[stop, Counting()]))


def saved():
    net = model()
    net.compile("sgd", "mse")
    net.fit(*data(), epochs=1, verbose=0, shuffle=False)
    net.save("net.keras")
    again = keras.models.load_model("net.keras")
    print(f"= {float(np.sum(again.predict(data()[0], verbose=0))):.4f}")


def process_group():
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    net = torch.nn.parallel.DistributedDataParallel(model())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    x, y = (torch.tensor(part) for part in data(seed=dist.get_rank()))
    for _ in range(20):
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
    print(f"= {float(loss):.5f}")
    del (
        net,
        loss,
    )  # freed after the group, DDP's reducer sometimes waits forever for Gloo's threads, under torchrun too
    dist.destroy_process_group()


def data_parallel():
    keras.distribution.initialize()
    import jax

    keras.distribution.set_distribution(keras.distribution.DataParallel(auto_shard_dataset=False))
    net = model()
    net.compile("sgd", "mse")
    told(net.fit(*data(seed=jax.process_index()), batch_size=16, epochs=2, verbose=0, shuffle=False))


def mirrored():
    import tensorflow as tf

    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        net = model()
        net.compile("sgd", "mse")
    told(net.fit(*data(), batch_size=16, epochs=2, verbose=0, shuffle=False))


def workers_loop():
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        net = model()
    x, y = map(tf.constant, data(32))

    @tf.function
    def step():
        def replica():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((net(x) - y) ** 2)
            gradients = tape.gradient(loss, net.trainable_variables)
            for gradient, variable in zip(gradients, net.trainable_variables, strict=True):
                variable.assign_sub(0.05 * tf.distribute.get_replica_context().all_reduce("mean", gradient))
            return loss

        return strategy.run(replica)

    for number in range(5):
        print(f"= {number} {float(strategy.reduce('mean', step(), axis=None)):.5f}")


def fails():
    fit()
    sys.stdout.flush()
    os._exit(3)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
