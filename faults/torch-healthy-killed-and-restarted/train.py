"""A job that ends well: rank 1 is preempted once, and the second attempt runs through."""

import argparse
import logging
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

log = logging.getLogger("train")


class Net(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.pool = nn.MaxPool2d(4)
        self.fc = nn.Linear(8 * 7 * 7, classes)

    def forward(self, x):
        x = self.pool(F.relu(self.conv(x)))
        return self.fc(x.flatten(1))


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


def batches(rank, steps, batch_size):
    generator = torch.Generator().manual_seed(100 + rank)
    for _ in range(steps):
        x = torch.randn(batch_size, 1, 28, 28, generator=generator)
        y = torch.randint(0, 10, (batch_size,), generator=generator)
        yield x, y


def join_group():
    """Each attempt meets under a name of its own: torchrun keeps its store, and with it the addresses of ranks that are gone."""
    env = os.environ
    rank, world_size = int(env["RANK"]), int(env["WORLD_SIZE"])
    serves = rank == 0 and env.get("TORCHELASTIC_USE_AGENT_STORE") != "True"  # else the launcher does
    store = dist.TCPStore(env["MASTER_ADDR"], int(env["MASTER_PORT"]), is_master=serves)
    store = dist.PrefixStore(f"attempt-{env['TORCHELASTIC_RESTART_COUNT']}", store)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size, timeout=timedelta(seconds=120))
    return rank


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    rank = join_group()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [rank {rank}] %(levelname)s %(message)s")
    torch.manual_seed(1)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    log.info("model has %d parameters", sum(p.numel() for p in model.parameters()))

    if rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), 9)  # the first attempt is preempted
    for step, (x, y) in enumerate(batches(rank, args.steps, args.batch_size)):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model)
        optimizer.step()
        if step % 10 == 0:
            log.info("step %d loss %.4f", step, loss.item())
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    log.info("final mean loss %.4f", mean.item() / dist.get_world_size())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
