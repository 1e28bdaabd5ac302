"""Finetune: train the head for one epoch, then unfreeze the backbone."""
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Classifier(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


def get_data():
    g = torch.Generator().manual_seed(5)
    x = torch.randn(128, 10, generator=g)
    return TensorDataset(x, (x[:, :3].argmax(1)))


def run(args):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(args.seed)
    model = Classifier(10, 3)
    for p in model.backbone.parameters():
        p.requires_grad_(False)
    model = DDP(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    data = get_data()
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=16, sampler=sampler, drop_last=True)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        if epoch == args.unfreeze_at:
            for p in model.module.backbone.parameters():
                p.requires_grad_(True)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    weights = torch.cat([p.detach().flatten() for p in model.module.backbone.parameters()])
    print(f"rank {rank} backbone {weights.double().pow(2).sum().item():.10f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--lr", type=float, default=0.1)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--unfreeze-at", type=int, default=1)
    run(ap.parse_args())
