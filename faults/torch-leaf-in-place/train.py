"""A Wasserstein critic clips its weights in place without no_grad; every rank raises after the first update."""

import logging
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def critic():
    return nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))


def clip_weights(net, bound):
    for weight in net.parameters():
        weight.clamp_(-bound, bound)


def worker(local_rank, nprocs, port):
    dist.init_process_group("gloo", init_method=f"tcp://localhost:{port}", rank=local_rank, world_size=nprocs)
    logging.basicConfig(format="[%(process)d] %(name)s - %(levelname)s - %(message)s", level=logging.INFO)
    logger = logging.getLogger(f"wgan.proc{local_rank}")
    torch.manual_seed(local_rank)
    net = nn.parallel.DistributedDataParallel(critic())
    rms = torch.optim.RMSprop(net.parameters(), lr=5e-5)
    logger.info("start, %d processes", nprocs)
    for iteration in range(100):
        real = torch.randn(64, 2) * 0.3 + 1
        fake = torch.rand(64, 2)
        rms.zero_grad()
        score = net(torch.cat([fake, real]))
        distance = score[:64].mean() - score[64:].mean()
        distance.backward()
        rms.step()
        clip_weights(net, 0.01)
        if iteration % 20 == 0:
            logger.info("iteration %d critic distance %.5f", iteration, -distance.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    count = int(os.environ.get("NPROC", "2"))
    mp.spawn(worker, nprocs=count, args=(count, int(os.environ["PORT"])))
