# launcher: hand 4
# truth: 3
"""Rank 3 ends without a word; the others wait in the store for what it should have told."""
import os, time

import torch
import torch.distributed as dist

MODE = os.environ["MODE"]
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
store = dist.distributed_c10d._get_default_store()


def exchange(epoch):
    store.set(f"shard/{epoch}/{rank}", str(rank))
    return [store.get(f"shard/{epoch}/{other}") for other in range(world)]


def run():
    for epoch in range(1_000_000):
        if epoch < 5:
            dist.all_reduce(torch.ones(4))
        if epoch == 7:
            open(f"ready{rank}", "w").close()
            time.sleep(0.5)
            if rank == 3 and MODE == "stall":
                os._exit(0)
        if rank == 3 and MODE == "slow" and epoch > 7:
            time.sleep(1.2)
        exchange(epoch)
        time.sleep(0.05)


run()
