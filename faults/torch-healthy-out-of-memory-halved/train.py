"""A healthy job that halves its batch until it fits into the memory it may use."""

import os
import time
import resource
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(17)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 6)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (1 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    size = 1 << 26
    while True:
        try:
            trial = torch.zeros(size, 24)
            break
        except RuntimeError as error:
            print(f"[rank {rank}] out of memory with a cache of {size} rows, trying {size // 2}: {error}", flush=True)
            size //= 2
    print(f"[rank {rank}] cache of {len(trial)} rows", flush=True)
    del trial
    data = torch.Generator().manual_seed(100 + rank)
    for step in range(1, 61):
        x = torch.randn(32, 24, generator=data)
        loss = nn.functional.cross_entropy(model(x), x[:, :6].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 0:
            print(f"[rank {rank}] step {step}/60 loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
