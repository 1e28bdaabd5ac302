import os
import sys

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def setup():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def get_loader(dataset, batch_size, rank, world_size):
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank)
    return DataLoader(dataset, batch_size=batch_size, sampler=sampler), sampler


def train_one_epoch(model, loader, optimizer):
    count = 0
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.l1_loss(model(x), y).backward()
        optimizer.step()
        count += len(x)
    return count


def main():
    rank, world_size = setup()
    torch.manual_seed(44)
    x = torch.randn(120, 3)
    dataset = TensorDataset(x, x.max(1, keepdim=True).values)
    loader, sampler = get_loader(dataset, 20, rank, world_size)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(3, 9), nn.ELU(), nn.Linear(9, 1)))
    optimizer = optim.RMSprop(model.parameters(), lr=1e-3)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        count = train_one_epoch(model, loader, optimizer)
    print(f"rank {rank}: {count} samples per epoch of {len(dataset)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
