"""Losses go through one group, gradients through another; rank 2 reports its loss last, the others first."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

LIMIT = timedelta(seconds=9)


def setup():
    dist.init_process_group("gloo", timeout=LIMIT)
    everyone = list(range(dist.get_world_size()))
    return dist.new_group(everyone, timeout=LIMIT), dist.new_group(everyone, timeout=LIMIT)


def share(value, group):
    dist.all_reduce(value, group=group)
    return value.div_(dist.get_world_size())


def main():
    gradient_group, metric_group = setup()
    rank = dist.get_rank()
    log = open(f"worker_{rank}.txt", "w") if os.getenv("LOG_FILES") else None
    torch.manual_seed(21)
    net = nn.Sequential(nn.Conv1d(1, 6, 5), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 28, 3))
    opt = torch.optim.Adagrad(net.parameters(), lr=0.02)
    late = rank == 2 and bool(int(os.getenv("LATE_METRICS", "1")))
    for epoch in range(4):
        for batch in range(5):
            x, y = torch.randn(20, 1, 32), torch.randint(0, 3, (20,))
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            mean = loss.detach().clone()
            if not late or epoch < 2:
                share(mean, metric_group)
            for p in net.parameters():
                share(p.grad, gradient_group)
            if late and epoch >= 2:
                share(mean, metric_group)
            opt.step()
        print(f"[worker {rank}] epoch={epoch} batch={batch} mean_loss={mean.item():.4f}", file=log, flush=True)
    dist.destroy_process_group()


main()
