"""The same job, mended."""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Pictures(Dataset):
    """Synthetic pictures, made when asked for."""

    def __init__(self, count=640, side=24):
        self.count, self.side = count, side

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        picture = torch.rand(3, self.side, self.side, generator=generator)
        return picture, index % 5


def build_model(side=24):
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(96, 5))


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    rank = dist.get_rank()
    dataset = Pictures()
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=20, sampler=sampler, num_workers=0)
    torch.manual_seed(0)
    model = DDP(build_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        began = time.perf_counter()
        data_time = step_time = 0.0
        mark = time.perf_counter()
        for step, (pictures, labels) in enumerate(loader):
            data_time += time.perf_counter() - mark
            mark = time.perf_counter()
            loss = nn.functional.cross_entropy(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step_time += time.perf_counter() - mark
            mark = time.perf_counter()
        print(f"rank {rank} epoch {epoch} loss {loss.item():.4f} data {data_time:.2f}s step {step_time:.2f}s", flush=True)
        if rank == 0:
            print(f"epoch {epoch} took {time.perf_counter() - began:.1f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
