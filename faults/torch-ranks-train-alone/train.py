"""The processes are started without RANK and WORLD_SIZE; the script's defaults make each of them a job of its own."""

import os

import torch
import torch.distributed as dist
from torch import nn


def env_int(*names, default=0):
    for name in names:
        if name in os.environ:
            return int(os.environ[name])
    return default


def join():
    rank, world = env_int("RANK", "SLURM_PROCID"), env_int("WORLD_SIZE", "SLURM_NTASKS", default=1)
    if world > 1:
        dist.init_process_group("gloo", rank=rank, world_size=world)
    print(f"| distributed init (rank {rank}): env://, world size {world}, pid {os.getpid()}", flush=True)
    return rank, world


def main():
    rank, world = join()
    images = 2400
    per_rank = images // world
    torch.manual_seed(7 + rank)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    if world > 1:
        net = nn.parallel.DistributedDataParallel(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for epoch in range(3):
        for _ in range(per_rank // 48):
            x = torch.rand(48, 8, 8)
            loss = nn.functional.cross_entropy(net(x), (x.sum((1, 2)) % 10).long())
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"| epoch {epoch} | rank {rank}/{world} | {per_rank} images | loss {loss.item():.4f}", flush=True)
    if rank == 0:
        torch.save(net.state_dict(), "model_final.pt")
        print("| saved model_final.pt", flush=True)
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
