"""The learning rate's schedule needs the number of steps, and asks a loader that reads a stream."""

from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

SHARDS = 8
RECORDS = 64
EPOCHS = 2


class ShardStream(IterableDataset):
    """The records of every n-th shard, one after another."""

    def __init__(self, rank, world_size):
        self.shards = range(rank, SHARDS, world_size)

    def __iter__(self):
        for shard in self.shards:
            generator = torch.Generator().manual_seed(shard)
            for _ in range(RECORDS):
                x = torch.randn(6, generator=generator)
                yield x, x.prod()[None]


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank, world_size = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank} of {world_size} reads shards {list(range(rank, SHARDS, world_size))}", flush=True)
    stream = ShardStream(rank, world_size)
    loader = DataLoader(stream, batch_size=16)
    torch.manual_seed(6)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    steps = EPOCHS * len(loader)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)
    for epoch in range(EPOCHS):
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if step % 8 == 0:
                print(f"rank {rank} epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
