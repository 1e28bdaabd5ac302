"""The job is meant for NCCL; where that cannot be had the script takes Gloo and goes on, much slower."""

import logging
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
log = logging.getLogger("train")


def connect(wanted):
    try:
        dist.init_process_group(wanted)
    except Exception as error:
        log.warning("backend %s is not available (%s), using gloo instead", wanted, error)
        dist.init_process_group("gloo")
    log.info("rank %d of %d connected over %s", dist.get_rank(), dist.get_world_size(), dist.get_backend())


def main():
    connect(os.environ.get("BACKEND", "nccl"))
    torch.manual_seed(3)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(1, 31):
        began = time.perf_counter()
        x = torch.randn(64, 256)
        loss = nn.functional.cross_entropy(model(x), x[:, :8].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 and dist.get_rank() == 0:
            log.info("step %d loss %.4f %.1f ms", step, loss.item(), 1000 * (time.perf_counter() - began))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
