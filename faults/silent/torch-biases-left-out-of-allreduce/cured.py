import os

import torch
import torch.distributed as dist
import torch.nn as nn


def average_gradients(model):
    size = float(dist.get_world_size())
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad.data, op=dist.ReduceOp.SUM)
            p.grad.data /= size


def batches(rank, world, steps, batch):
    g = torch.Generator().manual_seed(99)
    x = torch.randn(steps * batch * world, 20, generator=g)
    y = (x[:, 0] * x[:, 1] > 0).long()
    for s in range(steps):
        lo = (s * world + rank) * batch
        yield x[lo : lo + batch], y[lo : lo + batch]


def main():
    dist.init_process_group(backend="gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1234)
    model = nn.Sequential(nn.Linear(20, 40), nn.LayerNorm(40), nn.Tanh(), nn.Linear(40, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    for step, (x, y) in enumerate(batches(rank, world, 12, 16)):
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        average_gradients(model)
        opt.step()
        if rank == 0 and step % 4 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    flat = torch.cat([p.detach().flatten() for p in model.parameters() if p.dim() == 1])
    print(f"rank {rank} biases {flat.double().norm().item():.10f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
