# launcher: spawn 4
# truth: 3
"""Rank 3 is stopped by a signal."""
import os, signal, sys, time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

MODE = os.environ["MODE"]


def worker(index, world, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=index, world_size=world)
    buffer = torch.ones(1000)
    for epoch in range(1_000_000):
        dist.all_reduce(buffer, op=dist.ReduceOp.MAX)
        if epoch == 10:
            open(f"ready{index}", "w").close()
        if index == 3 and epoch > 10:
            if MODE == "stall":
                os.kill(os.getpid(), signal.SIGSTOP)
            if MODE == "slow":
                time.sleep(1.3)
        time.sleep(0.02)


if __name__ == "__main__":
    mp.spawn(worker, args=(4, int(os.environ["PORT"])), nprocs=4)
