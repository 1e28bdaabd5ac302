# launcher: jax 3
# truth: 1
"""Process 1 reads its next file from a pipe that nobody writes to, and does not come to the collective."""
import os, time

import jax

MODE, RANK = os.environ["MODE"], int(os.environ["NUMBER"])
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{os.environ['PORT']}", 3, RANK)
import jax.numpy as jnp
from jax.experimental import multihost_utils


def read_shard(step):
    if RANK == 1 and step >= 6:
        if MODE == "stall":
            with open("shards") as file:
                return file.read()
        if MODE == "slow":
            time.sleep(1.2)
    return jnp.ones(4)


def loop():
    for step in range(1_000_000):
        if step == 6:
            open(f"ready{RANK}", "w").close()
        value = read_shard(step)
        multihost_utils.process_allgather(value)
        time.sleep(0.02)


loop()
