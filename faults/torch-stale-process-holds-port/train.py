"""A small job; an earlier one that was never ended still holds its port."""

import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = DistributedDataParallel(nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, 21):
        x = torch.randn(16, 16)
        loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"[{rank}] step {step} loss {loss.item():.4f}", flush=True)
    if "--stay" in sys.argv:
        time.sleep(3600)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
