"""Rank 0 sends a table made by NumPy 2; rank 1 has NumPy 1.24 and cannot read it."""

import numpy
import torch
import torch.distributed as dist
from torch import nn


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    print(f"[{rank}] starting, torch {torch.__version__}", flush=True)
    table = [{"vocabulary": numpy.arange(100), "mean": numpy.float64(0.5)}] if rank == 0 else [None]
    dist.broadcast_object_list(table)
    scale = float(table[0]["mean"])
    model = nn.Linear(8, 1)
    loss = (model(torch.randn(16, 8)) * scale).pow(2).mean()
    loss.backward()
    dist.all_reduce(model.weight.grad)
    print(f"[{rank}] loss {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
