import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main(accumulation=2, updates=12):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = DDP(nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = CosineAnnealingLR(optimizer, T_max=updates)
    x = torch.randn(updates * accumulation * 2 * 8, 5)
    data = TensorDataset(x, x.abs().sum(1, keepdim=True))
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    done = 0
    for i, (x, y) in enumerate(loader):
        boundary = (i + 1) % accumulation == 0
        net.require_backward_grad_sync = boundary
        loss = nn.functional.huber_loss(net(x), y) / accumulation
        loss.backward()
        if boundary:
            optimizer.step()
            optimizer.zero_grad()
            done += 1
        scheduler.step()
    if rank == 0:
        print(f"lr {scheduler.get_last_lr()[0]:.5f} loss {loss.item():.4f}", flush=True)
        print(f"{scheduler.last_epoch} scheduler steps for {done} updates", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
