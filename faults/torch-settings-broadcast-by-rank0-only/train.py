"""Rank 0 reads the settings and broadcasts them, inside of an `if rank == 0`; the others use defaults and go on."""

import logging
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

DEFAULTS = {"lr": 0.01, "hidden": 40, "epochs": 3}


def read_settings(rank):
    settings = dict(DEFAULTS)
    if rank == 0:
        settings["lr"] = 0.02
        box = [settings]
        dist.broadcast_object_list(box, src=0)
        settings = box[0]
    return settings


def vae(hidden):
    return nn.ModuleDict({"enc": nn.Linear(28, 2 * hidden), "dec": nn.Linear(hidden, 28)})


class Wrapped(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.parts = vae(hidden)

    def forward(self, x):
        mean, logvar = self.parts["enc"](x).chunk(2, dim=1)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        kl = -0.5 * (1 + logvar - mean**2 - logvar.exp()).sum(1).mean()
        return ((self.parts["dec"](z) - x) ** 2).sum(1).mean() + kl


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=10))
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s,%(msecs)03d | r{rank} | %(message)s", datefmt="%Y/%m/%d %H:%M:%S")
    logging.info("joined, %d members", dist.get_world_size())
    settings = read_settings(rank)
    logging.info("settings: %s", settings)
    net = nn.parallel.DistributedDataParallel(Wrapped(settings["hidden"]))
    logging.info("model ready")
    opt = torch.optim.Adam(net.parameters(), lr=settings["lr"])
    for epoch in range(settings["epochs"]):
        for _ in range(10):
            opt.zero_grad()
            loss = net(torch.randn(32, 28))
            loss.backward()
            opt.step()
        logging.info("epoch %d elbo %.3f", epoch, -loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
