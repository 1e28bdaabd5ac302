"""Four ranks on two (simulated) nodes of two."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANKS_PER_NODE = 2


def build():
    return nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 1))


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    node_group, _ = dist.new_subgroups(RANKS_PER_NODE)
    torch.manual_seed(0)
    model = DDP(build(), process_group=node_group)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    g = torch.Generator().manual_seed(1)
    x = torch.randn(256, 6, generator=g)
    data = TensorDataset(x, x.sum(1, keepdim=True).sin())
    sampler = DistributedSampler(data, num_replicas=world, rank=rank)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    sampler.set_epoch(0)
    for i, (a, b) in enumerate(loader):
        opt.zero_grad()
        loss = ((model(a) - b) ** 2).mean()
        loss.backward()
        opt.step()
    norm = sum(p.detach().double().norm() ** 2 for p in model.parameters()).sqrt().item()
    print(f"rank {rank} node {rank // RANKS_PER_NODE} loss {loss.item():.4f} norm {norm:.10f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
