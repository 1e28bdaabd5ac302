import contextlib
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Config:
    accumulate = 4
    lr = 0.05
    clip = 1.0


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    x = torch.randn(320, 6)
    dataset = TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=Config.lr, momentum=0.9)
    scheduler = CosineAnnealingLR(optimizer, T_max=len(loader) // Config.accumulate)
    for i, (xb, yb) in enumerate(loader, 1):
        last = i % Config.accumulate == 0
        with contextlib.nullcontext() if last else model.no_sync():
            loss = nn.functional.cross_entropy(model(xb), yb) / Config.accumulate
            loss.backward()
        if last:
            nn.utils.clip_grad_norm_(model.parameters(), Config.clip)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    if rank == 0:
        print(f"loss {loss.item() * Config.accumulate:.4f} lr {scheduler.get_last_lr()[0]:.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
