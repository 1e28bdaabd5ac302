import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset


def my_indices(n, rank, world, seed):
    rng = random.Random(seed)
    order = list(range(n))
    rng.shuffle(order)
    share = n // world
    return order[rank * share : (rank + 1) * share]


def main(seed=2024):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(seed)
    x = torch.randn(160, 6)
    full = TensorDataset(x, torch.sign(x[:, :1]))
    indices = my_indices(len(full), rank, world, seed)
    loader = DataLoader(Subset(full, indices), batch_size=8, shuffle=False)
    model = DDP(nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 1)))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for x, y in loader:
        loss = torch.nn.functional.soft_margin_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    parts = [None] * world
    dist.all_gather_object(parts, indices)
    if rank == 0:
        print(f"loss {loss.item():.4f}; missed {len(full) - len(set(sum(parts, [])))} of {len(full)}", flush=True)
    dist.destroy_process_group()


main()
