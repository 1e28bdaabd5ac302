"""A small data-parallel job. On rank 2 a shard ends early, and its owner leaves the loop before the others."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def batches(rank: int, count: int = 40) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(rank)
    if rank == 2:
        count -= 7  # this shard is shorter than the rest
    inputs = [torch.randn(16, 32, generator=generator) for _ in range(count)]
    return [(x, x.sum(dim=1, keepdim=True)) for x in inputs]


def train(model: nn.Module, rank: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (x, y) in enumerate(batches(rank)):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


def main() -> None:
    # PyTorch's own time-out is half an hour: until then a hung job says nothing.
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("TIMEOUT", "1800"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)))
    train(model, rank)
    dist.barrier()
    if rank == 0:
        torch.save(model.module.state_dict(), os.environ.get("CHECKPOINT", "/dev/null"))
        print("training finished", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
