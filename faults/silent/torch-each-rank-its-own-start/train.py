import argparse

import torch
import torch.distributed as dist
from torch import nn


class Net(nn.Module):
    def __init__(self, d_in, d_hidden, d_out):
        super().__init__()
        self.l1 = nn.Linear(d_in, d_hidden)
        self.l2 = nn.Linear(d_hidden, d_out)

    def forward(self, x):
        return self.l2(torch.relu(self.l1(x)))


def all_reduce_mean(tensors):
    for t in tensors:
        dist.all_reduce(t)
        t /= dist.get_world_size()


def train(args):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed + rank)  # every rank its own noise
    model = Net(10, 24, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    g = torch.Generator().manual_seed(0)
    features = torch.randn(240, 10, generator=g)
    labels = features[:, :3].argmax(dim=1)
    order = torch.arange(len(features))[rank::world]
    for step, chunk in enumerate(order.split(12)):
        x = features[chunk] + 0.01 * torch.randn(len(chunk), 10)
        loss = nn.functional.cross_entropy(model(x), labels[chunk])
        optimizer.zero_grad()
        loss.backward()
        all_reduce_mean([p.grad for p in model.parameters()])
        optimizer.step()
        if step % 3 == 0:
            print(f"rank {rank} step {step} loss {loss.item():.4f}", flush=True)
    norm = sum(p.detach().double().pow(2).sum() for p in model.parameters()).sqrt()
    print(f"rank {rank} done norm {norm.item():.8f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lr", type=float, default=1e-2)
    train(parser.parse_args())
