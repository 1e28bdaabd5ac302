import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, random_split


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--val-fraction", type=float, default=0.2)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    g = torch.Generator().manual_seed(50)
    x = torch.randn(150, 8, generator=g)
    full = TensorDataset(x, x[:, :2].sum(1, keepdim=True), torch.arange(150))
    generator = torch.Generator().manual_seed(args.seed + dist.get_rank())
    n_val = int(len(full) * args.val_fraction)
    train_set, val_set = random_split(full, [len(full) - n_val, n_val], generator=generator)
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, batch_size=10, sampler=sampler)
    torch.manual_seed(args.seed)
    model = DDP(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    trained = set()
    for epoch in range(2):
        sampler.set_epoch(epoch)
        model.train()
        for x, y, index in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            trained |= set(index.tolist())
    model.eval()
    with torch.no_grad():
        part = DataLoader(val_set, batch_size=30)
        val = sum(nn.functional.mse_loss(model.module(x), y, reduction="sum").item() for x, y, _ in part) / n_val
    all_trained = [None] * dist.get_world_size()
    dist.all_gather_object(all_trained, trained)
    leaked = set(val_set.indices) & set().union(*all_trained)
    if dist.get_rank() == 0:
        print(f"val loss {val:.4f}; validation samples that some rank trains on: {len(leaked)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
