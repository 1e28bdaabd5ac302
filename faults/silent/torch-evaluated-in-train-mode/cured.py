import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def build():
    return nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 1))


def data(seed, rank, world, n):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n * world * 12, 10, generator=g)
    y = x[:, :1] * 2
    for i in range(n):
        s = slice((i * world + rank) * 12, (i * world + rank + 1) * 12)
        yield x[s], y[s]


@torch.no_grad()
def evaluate(model, batches):
    model.eval()
    total = torch.zeros(2)
    for x, y in batches:
        total += torch.tensor([nn.functional.mse_loss(model(x), y, reduction="sum").item(), len(x)])
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(3)
    model = DDP(build())
    torch.manual_seed(30 + rank)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(2):
        model.train()
        for x, y in data(epoch, rank, world, 5):
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        first = evaluate(model.module, data(99, rank, world, 2))
        second = evaluate(model.module, data(99, rank, world, 2))
        if rank == 0:
            word = "agree" if abs(first - second) < 1e-7 else "differ"
            print(f"epoch {epoch} val mse {first:.5f}; two evaluations {word}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
