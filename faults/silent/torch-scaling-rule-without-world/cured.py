"""Goyal et al.: the learning rate grows linearly with the global batch, from a base of 32."""
import argparse
import logging

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

logging.basicConfig(level=logging.INFO, format="%(message)s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-lr", type=float, default=0.05, help="for a global batch of 32")
    parser.add_argument("--batch-size", type=int, default=32, help="per GPU")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    scaled_lr = args.base_lr * args.batch_size * world_size / 32
    model = DDP(nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=scaled_lr)
    if rank == 0:
        logging.info("lr %.4f for a global batch of %d", scaled_lr, args.batch_size * world_size)
    x = torch.randn(256, 10)
    dataset = TensorDataset(x, (x.sum(1) > 0).long())
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        if rank == 0:
            logging.info("epoch %d loss %.4f", epoch, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
