"""Healthy JAX jobs: `jax_jobs.py CASE`. Lines that begin with `=` must be the same by any launcher."""

import os
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Part

jax.distributed.initialize(
    num_processes=int(os.environ["JAX_NUM_PROCESSES"]), process_id=int(os.environ["JAX_PROCESS_ID"])
)

ME = jax.process_index()
MESH = Mesh(jax.devices(), ("data",))
ROWS, WHOLE = NamedSharding(MESH, Part("data")), NamedSharding(MESH, Part())


def rows(seed, count=16):
    mine = np.random.default_rng(seed * 10 + ME).normal(size=(count, 8)).astype("float32")
    return jax.make_array_from_process_local_data(ROWS, mine)


def loss_of(weights, x):
    return jnp.mean((x @ weights - x.sum(1)) ** 2)


@jax.jit
def step(weights, x):
    loss, gradient = jax.value_and_grad(loss_of)(weights, x)
    return weights - 0.05 * gradient, loss


def data_parallel():
    weights = jax.device_put(np.zeros(8, "float32"), WHOLE)
    for number in range(20):
        weights, loss = step(weights, rows(number))
        if number % 5 == 0:
            print(f"= {number} {float(loss):.5f}")


def sharded_weights():
    weights = jax.make_array_from_process_local_data(ROWS, np.zeros(4, "float32"))
    for number in range(10):
        weights, loss = step(weights, jax.device_put(np.ones((4, 8), "float32") * number / 10, WHOLE))
    print(f"= {float(loss):.5f}")


def mapped():
    total = jax.jit(
        jax.shard_map(lambda x: jax.lax.psum(x.sum(), "data"), mesh=MESH, in_specs=Part("data"), out_specs=Part())
    )
    print(f"= {float(total(rows(1))):.5f}")


def ring():
    pairs = [(0, 1), (1, 0)]
    shift = jax.shard_map(
        lambda x: jax.lax.ppermute(x, "data", pairs), mesh=MESH, in_specs=Part("data"), out_specs=Part("data")
    )
    print("=", np.asarray(jax.jit(shift)(rows(2)).addressable_data(0))[0].round(4).tolist())


def gathered():
    print("=", multihost_utils.process_allgather(jnp.array([ME, ME * 10])).tolist())


def broadcast():
    print("=", multihost_utils.broadcast_one_to_all(np.array([ME + 5])).tolist())


def barriers():
    for number in range(3):
        multihost_utils.sync_global_devices(f"step {number}")
    print("= passed")


def scanned():
    weights = jax.device_put(np.zeros(8, "float32"), WHOLE)
    epoch = jax.jit(lambda w, x: jax.lax.scan(lambda w, _: step(w, x), w, length=10))
    print(f"= {float(epoch(weights, rows(3))[1][-1]):.5f}")


def callback():
    doubled = jax.jit(
        lambda x: jax.pure_callback(lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct((3,), "float32"), x)
    )
    print("=", doubled(jnp.ones(3)).tolist())
    multihost_utils.sync_global_devices("end")


def slow_process():
    for number in range(3):
        time.sleep(1.0 if number % 2 == ME else 0.0)
        multihost_utils.sync_global_devices(f"slow {number}")
    print("= passed")


def devices():
    print("=", jax.device_count(), jax.local_device_count(), jax.process_count(), ME)
    multihost_utils.sync_global_devices("end")


def fails():
    multihost_utils.sync_global_devices("last")
    print("= leaving", flush=True)
    os._exit(3)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
