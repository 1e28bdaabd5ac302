"""Rank 2 finds its shard too small and exits with status 3; the launcher is mp.spawn."""

import os
import socket
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def load_shard(rank, rows=256):
    generator = torch.Generator().manual_seed(rank)
    x = torch.rand(rows, 8, generator=generator)
    return x, (x.sum(1, keepdim=True) > 4).float()


def train(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size, timeout=timedelta(seconds=10))
    torch.manual_seed(3)
    x, y = load_shard(rank, rows=256 if rank != 2 else 20)
    if len(x) < 32:
        print(f"rank {rank}: only {len(x)} rows in shard", flush=True)
        sys.exit(3)
    model = DDP(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(5):
        for i in range(0, len(x), 32):
            optimizer.zero_grad()
            loss = criterion(model(x[i : i + 32]), y[i : i + 32])
            loss.backward()
            optimizer.step()
        print(f"rank {rank} epoch {epoch} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    workers = 4
    mp.spawn(train, args=(workers, free_port()), nprocs=workers, join=True)
    print("training finished")
