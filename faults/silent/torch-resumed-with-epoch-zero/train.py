import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def train_one_epoch(model, loader, optimizer):
    total = 0.0
    for x, y in loader:
        loss = nn.functional.l1_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--stop-after", type=int, default=0, help="steps")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    x = torch.randn(96, 4)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    model = DDP(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    start_epoch = 0
    if args.resume and os.path.exists("ckpt.pth"):
        checkpoint = torch.load("ckpt.pth", weights_only=True)
        model.module.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        if rank == 0:
            word = "order of epoch 0 again" if start_epoch == 0 else f"goes on with epoch {start_epoch}"
            print(f"loaded checkpoint of epoch {checkpoint['epoch']}, {word}", flush=True)
    for epoch in range(start_epoch, args.epochs):
        sampler.set_epoch(epoch)
        loss = train_one_epoch(model, loader, optimizer)
        if rank == 0:
            print(f"epoch {epoch}: {loss:.4f}", flush=True)
            torch.save({"epoch": epoch + 1, "state_dict": model.module.state_dict(), "optimizer": optimizer.state_dict()}, "ckpt.pth")
        dist.barrier()
        if args.stop_after and (epoch + 1) * len(loader) >= args.stop_after:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
