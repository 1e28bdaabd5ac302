"""The address of the rendezvous is written with a scheme that does not exist."""

import argparse
import logging

import torch
import torch.distributed as dist
from torch import nn, optim


def parse():
    p = argparse.ArgumentParser(description="matrix factorisation")
    p.add_argument("--dist-url", default="tcp://127.0.0.1:29500", type=str, help="url used to set up distributed training")
    p.add_argument("--world-size", default=1, type=int)
    p.add_argument("--rank", default=0, type=int)
    p.add_argument("--dist-backend", default="gloo", type=str)
    return p.parse_args()


class Factors(nn.Module):
    def __init__(self, users=100, items=80, k=8):
        super().__init__()
        self.u, self.v = nn.Embedding(users, k), nn.Embedding(items, k)

    def forward(self, user, item):
        return (self.u(user) * self.v(item)).sum(1)


def main():
    args = parse()
    logging.basicConfig(level=logging.INFO, format="%(levelname)-8s %(message)s")
    logging.info("Use process %d of %d for training", args.rank, args.world_size)
    dist.init_process_group(backend=args.dist_backend, init_method=args.dist_url, world_size=args.world_size, rank=args.rank)
    net = nn.parallel.DistributedDataParallel(Factors())
    opt = optim.SGD(net.parameters(), lr=0.5)
    for epoch in range(4):
        user, item = torch.randint(0, 100, (256,)), torch.randint(0, 80, (256,))
        loss = (net(user, item) - ((user + item) % 5)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        logging.info("Epoch [%d] rmse %.4f", epoch, loss.sqrt().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
