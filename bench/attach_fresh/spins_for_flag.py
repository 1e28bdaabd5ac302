# launcher: hand 3
# truth: 1
"""Rank 1 turns in a loop until a flag is set that nobody sets."""
import os, time

import torch
import torch.distributed as dist

MODE = os.environ["MODE"]


class Prefetcher:
    def __init__(self):
        self.ready = MODE != "stall"
        self.batch = torch.randn(8, 8)

    def next(self):
        while not self.ready:
            pass
        return self.batch


def augment(batch):
    total = 0
    for number in range(4_000_000):
        total += number % 7
    return batch + total * 0


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    prefetcher = Prefetcher()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    for step in range(1_000_000):
        if step == 5:
            open(f"ready{rank}", "w").close()
        batch = prefetcher.next() if rank == 1 and step >= 5 else torch.randn(8, 8)
        if MODE == "slow" and rank == 1:
            batch = augment(batch)
        model(batch).sum().backward()
        time.sleep(0.02)


main()
