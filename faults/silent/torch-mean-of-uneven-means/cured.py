import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def val_files(rank):
    """The first file is long, the second short; one file for each rank."""
    g = torch.Generator().manual_seed(rank)
    n = (20, 5)[rank]
    x = torch.randn(n, 3, generator=g) * (1 + 2 * rank)
    return x, x.sum(1, keepdim=True)


@torch.no_grad()
def validate(model, rank):
    model.eval()
    x, y = val_files(rank)
    total = nn.functional.mse_loss(model(x), y, reduction="sum")
    count = torch.tensor(float(len(x)))
    exact = torch.tensor([nn.functional.mse_loss(model(x), y, reduction="sum"), len(x)])
    dist.all_reduce(total)
    dist.all_reduce(count)
    result = (total / count).item()
    dist.all_reduce(exact)
    model.train()
    return result, (exact[0] / exact[1]).item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Linear(3, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.02)
    for step in range(6):
        g = torch.Generator().manual_seed(50 + 2 * step + rank)
        x = torch.randn(8, 3, generator=g)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
    result, exact = validate(model.module, rank)
    if rank == 0:
        print(f"val loss {result:.4f}, off by {abs(result - exact):.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
