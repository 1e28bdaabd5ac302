"""The same with one seed for the weights on all ranks."""

import torch
import torch.distributed as dist
from torch import nn


def checksums(model):
    mine = torch.stack([parameter.detach().double().sum() for parameter in model.parameters()]).sum().reshape(1)
    everyone = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, mine)
    return [round(value.item(), 4) for value in everyone]


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1234)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = torch.Generator().manual_seed(rank)
    for step in range(1, 61):
        x = torch.randn(32, 16, generator=data)
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world
        optimizer.step()
        if step % 20 == 0:
            print(f"[{rank}] step {step} loss {loss.item():.4f}", flush=True)
            sums = checksums(model)
            if rank == 0:
                print(f"[0] checksum of weights by rank: {sums}", flush=True)
            if rank == 0 and len(set(sums)) > 1:
                print("[0] warning: the weights differ between ranks", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
