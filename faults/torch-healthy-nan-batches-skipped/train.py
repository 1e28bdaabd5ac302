"""A healthy job with some bad batches: their loss is NaN and the step is skipped on all ranks."""

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
    model = DistributedDataParallel(nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 6)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    data = torch.Generator().manual_seed(100 + rank)
    for step in range(1, 61):
        x = torch.randn(32, 24, generator=data)
        loss = nn.functional.cross_entropy(model(x), x[:, :6].argmax(1))
        seen = loss.detach() * float("nan") if step in (7, 23) and rank == 0 else loss.detach()
        bad = torch.isnan(seen).float()
        dist.all_reduce(bad)
        if bad.item():
            print(f"[rank {rank}] step {step}: loss is nan on {bad.item():g} rank(s), batch skipped", flush=True)
            loss = loss * 0  # the gradients of all ranks are zero, and they stay together
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 0:
            print(f"[rank {rank}] step {step}/60 loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
