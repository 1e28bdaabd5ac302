# launcher: horovodrun 3
# truth: 2
"""Rank 2 waits for a tensor that only it announces: its branch uses another name."""
import os, time

import horovod.torch as hvd
import torch

MODE = os.environ["MODE"]
hvd.init()
rank = hvd.rank()


def reduce_loss(step):
    name = "loss.auxiliary" if MODE == "stall" and rank == 2 and step == 6 else "loss"
    return hvd.allreduce(torch.ones(1), name=name)


def train():
    for step in range(1_000_000):
        if step == 6:
            open(f"ready{rank}", "w").close()
        if MODE == "slow" and rank == 2:
            time.sleep(1.2)
        reduce_loss(step)
        time.sleep(0.02)


train()
