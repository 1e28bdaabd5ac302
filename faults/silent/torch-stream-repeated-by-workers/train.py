import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Shards(IterableDataset):
    def __init__(self, n, rank, world):
        super().__init__()
        g = torch.Generator().manual_seed(9)
        self.x = torch.randn(n, 5, generator=g)
        self.rank, self.world = rank, world

    def __iter__(self):
        for i in range(self.rank, len(self.x), self.world):
            yield i, self.x[i]


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Linear(5, 2)
        self.up = nn.Linear(2, 5)

    def forward(self, x):
        return self.up(torch.tanh(self.down(x)))


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    loader = DataLoader(Shards(120, rank, world), batch_size=12, num_workers=2)
    model = DistributedDataParallel(AutoEncoder())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = []
    for index, x in loader:
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rows += index.tolist()
    print(f"rank {rank}: {len(rows)} rows, {len(set(rows))} of them different", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
