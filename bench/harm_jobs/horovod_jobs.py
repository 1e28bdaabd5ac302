"""Healthy Horovod jobs, with PyTorch or (`tf_…`) TensorFlow: `horovod_jobs.py CASE`. Lines that begin with `=` must be the same by any launcher."""

import sys
import time

if sys.argv[1].startswith("tf_"):
    import horovod.tensorflow as hvd
    import tensorflow as tf
else:
    import horovod.torch as hvd
    import torch


def train(steps=20, accumulate=1):
    torch.manual_seed(0)
    net = torch.nn.Linear(8, 1)
    chance = torch.Generator().manual_seed(hvd.rank())
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(net.parameters(), lr=0.05), net.named_parameters(), backward_passes_per_step=accumulate
    )
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    for number in range(steps):
        optimizer.zero_grad()
        for _ in range(accumulate):
            x = torch.randn(16, 8, generator=chance)
            loss = ((net(x) - x.sum(1, keepdim=True)) ** 2).mean()
            loss.backward()
        optimizer.step()
        if number % 5 == 0:
            print(f"= {number} {float(loss):.5f}")


def optimizer():
    train()


def accumulation():
    train(6, 3)


def collectives():
    mine = torch.full((2,), float(hvd.rank() + 1))
    print("=", hvd.allreduce(mine, op=hvd.Sum).tolist(), hvd.allgather(mine[: 1 + hvd.rank()]).tolist())
    print("=", hvd.alltoall(torch.arange(4.0) + 10 * hvd.rank())[0].tolist(), hvd.broadcast(mine, 1).tolist())


def grouped():
    print("=", [part.tolist() for part in hvd.grouped_allreduce([torch.ones(2), torch.ones(3)], op=hvd.Sum)])


def objects():
    print("=", hvd.broadcast_object({"seed": 7 + hvd.rank()}, root_rank=0), hvd.allgather_object(hvd.rank()))


def join():
    for _ in range(3 + 2 * hvd.rank()):
        hvd.allreduce(torch.ones(2), name="uneven")
    print("=", hvd.join())


def handles():
    waiting = [
        hvd.allreduce_async(torch.full((2,), float(number)), name=f"t{number}", op=hvd.Sum) for number in range(8)
    ]
    print("=", [hvd.synchronize(handle).tolist() for handle in reversed(waiting)])


def slow_rank():
    for number in range(3):
        time.sleep(1.0 if hvd.rank() == number % 2 else 0.0)
        hvd.allreduce(torch.ones(1), name="slow")
    print("= passed")


def tf_tape():
    weights = tf.Variable(tf.zeros((8, 1)))
    hvd.broadcast_variables([weights], root_rank=0)
    for number in range(10):
        x = tf.random.stateless_normal((16, 8), (number, hvd.rank()))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights - tf.reduce_sum(x, 1, keepdims=True)) ** 2)
        weights.assign_sub(0.05 * hvd.DistributedGradientTape(tape).gradient(loss, [weights])[0])
    print(f"= {float(loss):.5f}")


def tf_function():
    weights = tf.Variable(tf.zeros((8, 1)))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights - 1.0) ** 2)
        tape = hvd.DistributedGradientTape(tape)
        weights.assign_sub(0.05 * tape.gradient(loss, [weights])[0])
        return loss

    for number in range(10):
        loss = step(tf.random.stateless_normal((16, 8), (number, hvd.rank())))
    print(f"= {float(loss):.5f}")


def tf_fit():
    import horovod.tensorflow.keras as hvd_keras
    import tf_keras

    tf_keras.utils.set_random_seed(3)
    net = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=(8,))])
    net.compile(hvd_keras.DistributedOptimizer(tf_keras.optimizers.legacy.SGD(0.05)), "mse")
    x = tf.random.stateless_normal((128, 8), (1, hvd.rank()))
    start = hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)
    told = net.fit(x, tf.reduce_sum(x, 1), batch_size=16, epochs=2, verbose=0, shuffle=False, callbacks=[start])
    print("=", [round(loss, 5) for loss in told.history["loss"]])


def fails():
    hvd.allreduce(torch.ones(1), name="last")
    print("= leaving", flush=True)
    sys.exit(3)


if __name__ == "__main__":
    hvd.init()
    globals()[sys.argv[1]]()
    hvd.shutdown()
