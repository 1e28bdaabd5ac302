"""Gradient accumulation, to reach the batch size of the paper."""
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ACCUMULATION_STEPS = 4


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    x = torch.randn(256, 12)
    dataset = TensorDataset(x, x[:, :4].argmax(1))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 4)))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    weight = model.module[0].weight
    sampler.set_epoch(0)
    optimizer.zero_grad()
    held = []
    for i, (x, y) in enumerate(loader):
        last = (i + 1) % ACCUMULATION_STEPS == 0
        held.append((x, y))
        with contextlib.nullcontext() if last else model.no_sync():
            loss = criterion(model(x), y)
            (loss / ACCUMULATION_STEPS).backward()
        if last:
            if i + 1 == ACCUMULATION_STEPS:
                xs, ys = (torch.cat(t) for t in zip(*held))
                (mean,) = torch.autograd.grad(criterion(model.module(xs), ys), weight)
                dist.all_reduce(mean)
                times = weight.grad.norm() / (mean / dist.get_world_size()).norm()
                if rank == 0:
                    print(f"gradient is {times.item():.1f} times that of the large batch", flush=True)
            optimizer.step()
            optimizer.zero_grad()
            if rank == 0:
                print(f"update {(i + 1) // ACCUMULATION_STEPS} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
