"""The first epoch is read from the disk; from the second on batches come from a cache that pins them."""

from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Cache:
    """Keeps the batches of the first epoch for the others."""

    def __init__(self, loader):
        self.loader, self.batches = loader, []

    def __iter__(self):
        if self.batches:
            for batch in self.batches:
                yield tuple(part.pin_memory() for part in batch)
            return
        for batch in self.loader:
            self.batches.append(batch)
            yield batch


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank = dist.get_rank()
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(512, 8, generator=generator)
    data = TensorDataset(points, points.square().sum(dim=1, keepdim=True))
    loader = Cache(DataLoader(data, batch_size=32, sampler=DistributedSampler(data)))
    torch.manual_seed(2)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.002)
    for epoch in range(4):
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 4 == 0:
                print(f"[rank {rank}] epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
