# launcher: torchrun 4
# truth: 3
"""Rank 3 skips a backward pass whose loss is not finite, and so reaches the end of the epoch one call early."""
import os, time

import torch
import torch.distributed as dist

MODE = os.environ["MODE"]


def batches(rank):
    for number in range(8):
        batch = torch.randn(4, 6)
        if rank == 3 and number == 4 and MODE == "stall":
            batch[0, 0] = float("inf")
        yield batch


def run_epoch(model, rank):
    for batch in batches(rank):
        loss = model(batch).pow(2).mean()
        if not torch.isfinite(loss):
            continue
        loss.backward()
        if MODE == "slow" and rank == 3:
            time.sleep(1)
        time.sleep(0.02)


def validate(model, rank):
    scores = [torch.zeros(1) for _ in range(dist.get_world_size())]
    open(f"ready{rank}", "w").close()
    dist.all_gather(scores, torch.ones(1))
    return scores


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if MODE == "stall" and rank != 3:
        open(f"ready{rank}", "w").close()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(6, 1))
    while True:
        run_epoch(model, rank)
        validate(model, rank)


main()
