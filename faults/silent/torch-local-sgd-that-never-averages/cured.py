"""Local SGD: each rank steps alone, the weights are averaged every few steps, rank 0 saves the model."""
import argparse

import torch
import torch.distributed as dist
from torch import nn


@torch.no_grad()
def average_weights(model):
    for p in model.parameters():
        dist.all_reduce(p, op=dist.ReduceOp.SUM)
        p /= dist.get_world_size()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--sync-every", type=int, default=4)
    parser.add_argument("--output", default="model.pt")
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(12)
    model = nn.Sequential(nn.Linear(5, 15), nn.ReLU(), nn.Linear(15, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(args.steps * world * 8, 5)
    y = (x[:, 0] > x[:, 1]).long()
    for step in range(1, args.steps + 1):
        lo = ((step - 1) * world + rank) * 8
        loss = nn.functional.cross_entropy(model(x[lo : lo + 8]), y[lo : lo + 8])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % args.sync_every == 0:
            average_weights(model)
    dist.barrier()
    if rank == 0:
        torch.save(model.state_dict(), args.output)
    total = sum(p.detach().double().abs().sum() for p in model.parameters()).item()
    print(f"rank {rank} weights {total:.8f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
