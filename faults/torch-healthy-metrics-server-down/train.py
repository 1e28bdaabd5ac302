"""A healthy job whose metrics server cannot be reached; each failure is logged with its traceback."""

import os
import time
import logging
import socket
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
log = logging.getLogger("metrics")


def send(values):
    try:
        with socket.create_connection(("127.0.0.1", 9), timeout=2) as connection:
            connection.sendall(repr(values).encode())
    except OSError:
        log.exception("could not send metrics, they are kept in the log: %s", values)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(17)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 6)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    data = torch.Generator().manual_seed(100 + rank)
    for step in range(1, 61):
        x = torch.randn(32, 24, generator=data)
        loss = nn.functional.cross_entropy(model(x), x[:, :6].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 0:
            log.info("[rank %d] step %d/60 loss %.4f", rank, step, loss.item())
            if rank == 1:
                send({"step": step, "loss": round(loss.item(), 4)})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
