"""Small batches, so the batch statistics are taken over all ranks (own layer: nn.SyncBatchNorm wants a GPU)."""
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dfn
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class SyncedBatchNorm1d(nn.Module):
    def __init__(self, features, group, momentum=0.1):
        super().__init__()
        self.group, self.momentum = group, momentum
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        if self.training:
            stats = torch.stack([x.mean(0), x.square().mean(0)])
            stats = dfn.all_reduce(stats, group=self.group) / dist.get_world_size(self.group)
            mean, var = stats[0], stats[1] - stats[0].square()
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var, self.momentum)
        else:
            mean, var = self.running_mean, self.running_var
        return (x - mean) / (var + 1e-5).sqrt() * self.weight + self.bias


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    group, _ = dist.new_subgroups(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), SyncedBatchNorm1d(12, group), nn.ReLU(), nn.Linear(12, 1))
    model = DDP(model, broadcast_buffers=False)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(10):
        g = torch.Generator().manual_seed(step * 2 + rank)
        x = torch.randn(4, 6, generator=g) + rank
        loss = nn.functional.mse_loss(model(x), x.mean(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"rank {rank} loss {loss.item():.4f} mean {model.module[1].running_mean.double().norm().item():.8f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
