"""fully_shard replaces the parameters; the optimizer was made before and updates tensors that nobody uses any more."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        return x + self.ff(self.norm(x))


class Net(nn.Module):
    def __init__(self, d=32, depth=2):
        super().__init__()
        self.inp = nn.Linear(8, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(depth))
        self.out = nn.Linear(d, 1)

    def forward(self, x):
        x = self.inp(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x)


def shard(net, mesh):
    for block in net.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(net, mesh=mesh)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    net = shard(net, mesh)
    g = torch.Generator().manual_seed(rank)
    x = torch.randn(256, 8, generator=g)
    y = x[:, :1] * 3 + x[:, 1:2] ** 2
    for epoch in range(1, 13):
        losses = []
        for xb, yb in zip(x.split(64), y.split(64), strict=True):
            loss = nn.functional.mse_loss(net(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        mean = torch.stack(losses).mean()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"epoch {epoch:02d}/12  train_loss={mean.item() / dist.get_world_size():.6f}  lr=1.0e-02", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
