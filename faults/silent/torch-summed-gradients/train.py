"""ResNet-ish toy without DDP: bucketed all-reduce of the gradients."""
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d))

    def forward(self, x):
        return x + self.f(x)


def sync(params):
    grads = [p.grad for p in params if p.grad is not None]
    buffer = torch.cat([g.flatten() for g in grads])
    dist.all_reduce(buffer)
    offset = 0
    for g in grads:
        g.copy_(buffer[offset : offset + g.numel()].view_as(g))
        offset += g.numel()


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(7)
net = nn.Sequential(nn.Linear(8, 24), Block(24), Block(24), nn.Linear(24, 1))
params = list(net.parameters())
opt = torch.optim.SGD(params, lr=0.01)
x = torch.randn(160, 8)
y = x.pow(2).sum(1, keepdim=True) / 8
ds = TensorDataset(x, y)
sampler = DistributedSampler(ds, num_replicas=world, rank=rank)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for it, (xb, yb) in enumerate(DataLoader(ds, batch_size=16, sampler=sampler)):
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(xb), yb)
        loss.backward()
        mine = params[0].grad.clone()
        sync(params)
        if epoch == 0 and it == 0:
            both = [torch.empty_like(mine) for _ in range(world)]
            dist.all_gather(both, mine)
            mean = torch.stack(both).mean(0)
            ratio = (params[0].grad.norm() / mean.norm()).item()
            if rank == 0:
                print(f"first step: update ratio {ratio:.2f}", flush=True)
        opt.step()
    if rank == 0:
        print(f"epoch {epoch}: {loss.item():.4f}", flush=True)
dist.destroy_process_group()
