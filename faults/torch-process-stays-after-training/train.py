"""A thread that is no daemon keeps rank 1's process alive after training has ended."""

import threading
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

samples = []


def sample_load():
    while True:
        samples.append(time.time())
        time.sleep(0.5)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if rank == 1:
        threading.Thread(target=sample_load).start()
    torch.manual_seed(3)
    model = DistributedDataParallel(nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, 41):
        x = torch.randn(32, 32)
        loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"[{rank}] step {step} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()
    print(f"[{rank}] training finished", flush=True)


if __name__ == "__main__":
    main()
