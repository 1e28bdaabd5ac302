import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", default=2, type=int)
    p.add_argument("--bs", default=16, type=int)
    return p.parse_args()


def full_batch_gradient(model, x, y, criterion):
    """The gradient of one process on the whole batch, for the log."""
    weight = model.module[0].weight
    (g,) = torch.autograd.grad(criterion(model.module(x), y), weight)
    return g


def main():
    args = parse()
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(3)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(14, 30), nn.ReLU(), nn.Linear(30, 5)))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    x = torch.randn(160, 14)
    y = x[:, :5].argmax(1)
    dataset = TensorDataset(x, y)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=args.bs, sampler=sampler)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for step, (images, target) in enumerate(loader):
            if epoch == 0 and step == 0:
                xs = [torch.empty_like(images) for _ in range(world_size)]
                ys = [torch.empty_like(target) for _ in range(world_size)]
                dist.all_gather(xs, images)
                dist.all_gather(ys, target)
                reference = full_batch_gradient(model, torch.cat(xs), torch.cat(ys), criterion)
            logits = model(images)
            loss = criterion(logits, target) / world_size
            optimizer.zero_grad()
            loss.backward()
            if epoch == 0 and step == 0 and rank == 0:
                share = model.module[0].weight.grad.norm() / reference.norm()
                print(f"gradient is {share.item():.2f} of the mean over the batch", flush=True)
            optimizer.step()
        if rank == 0:
            print(f"Epoch {epoch} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
