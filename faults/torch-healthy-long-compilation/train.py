"""A healthy job whose first step compiles for long: the others of its kind wait in silence."""

import os
import time
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(17)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(24, 48), *[nn.Sequential(nn.LayerNorm(48), nn.Linear(48, 48), nn.GELU()) for _ in range(8)], nn.Linear(48, 6)))
    step_fn = torch.compile(model)
    print(f"[rank {rank}] compiling, the first step takes a while", flush=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    data = torch.Generator().manual_seed(100 + rank)
    for step in range(1, 61):
        x = torch.randn(32, 24, generator=data)
        loss = nn.functional.cross_entropy(step_fn(x), x[:, :6].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 0:
            print(f"[rank {rank}] step {step}/60 loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
