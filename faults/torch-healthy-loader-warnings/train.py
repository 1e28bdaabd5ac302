"""A healthy job with too many loader workers, odd settings and the warnings they bring."""

import os
import time
import warnings
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(17)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 6)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    data = torch.Generator().manual_seed(100 + rank)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 20)
    rows = TensorDataset(torch.randn(2000, 24))
    loader = DataLoader(rows, batch_size=32, sampler=DistributedSampler(rows), num_workers=4, pin_memory=True)
    for step, (x,) in enumerate(loader, 1):
        loss = nn.functional.cross_entropy(model(x), x[:, :6].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step(step)
        if step % 15 == 0:
            print(f"[rank {rank}] step {step}/60 loss {loss.item():.4f}", flush=True)
    warnings.warn("ERROR_ON_MISMATCH is deprecated and will be removed; failed checks only warn", FutureWarning)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
