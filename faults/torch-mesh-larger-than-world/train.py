"""A 2 x 2 mesh of data and tensor parallelism, started with three processes."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


def cli():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dp", type=int, default=2)
    parser.add_argument("--tp", type=int, default=2)
    return parser.parse_args()


def prepare(args):
    mesh = init_device_mesh("cpu", (args.dp, args.tp), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(0)
    net = parallelize_module(FeedForward(32, 128), mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return mesh, net


def train(args):
    mesh, net = prepare(args)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, foreach=False)
    for step in range(10):
        torch.manual_seed(100 * mesh["dp"].get_local_rank() + step)
        x = torch.randn(16, 32)
        loss = (net(x) - x.flip(1)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"(dp={mesh['dp'].get_local_rank()}, tp={mesh['tp'].get_local_rank()}) step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    train(cli())
