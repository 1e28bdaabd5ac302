"""The same job, mended."""

import logging

import torch
import torch.distributed as dist
from projector import Projector
from projector import contrastive
from torch import nn

log = logging.getLogger("simclr")


def augment(x):
    return x + 0.1 * torch.randn_like(x)


def main():
    dist.init_process_group("gloo")
    logging.basicConfig(level=logging.INFO, format="%(name)s %(levelname)s: %(message)s")
    net = nn.parallel.DistributedDataParallel(Projector(24))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(20):
        x = torch.randn(32, 24)
        loss = contrastive(net(augment(x)), net(augment(x)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 5 == 0 and dist.get_rank() == 0:
            log.info("step %d nt-xent %.4f", step, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
