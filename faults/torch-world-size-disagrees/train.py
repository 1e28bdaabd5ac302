"""WORLD_SIZE of rank 1 is 2, the others have 3."""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def banner():
    keys = ("RANK", "WORLD_SIZE", "MASTER_ADDR")
    print("env:", ", ".join(f"{k}={os.environ[k]}" for k in keys), flush=True)


class Gate(nn.Module):
    """A tiny mixture of experts."""

    def __init__(self, experts=4):
        super().__init__()
        self.router = nn.Linear(10, experts)
        self.experts = nn.ModuleList(nn.Linear(10, 3) for _ in range(experts))

    def forward(self, x):
        weights = self.router(x).softmax(-1)
        return sum(w[:, None] * e(x) for w, e in zip(weights.unbind(1), self.experts, strict=True))


def main():
    banner()
    started = time.time()
    dist.init_process_group("gloo", timeout=timedelta(seconds=6))
    print(f"process group up after {time.time() - started:.1f}s", flush=True)
    net = nn.parallel.DistributedDataParallel(Gate())
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(20):
        x = torch.randn(32, 10)
        loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 5 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
