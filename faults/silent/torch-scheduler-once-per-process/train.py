import math

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import LambdaLR


class Engine:
    """Owns optimizer and scheduler, so that user code calls `step` only."""

    def __init__(self, model, total_steps, lr=0.1):
        self.world = dist.get_world_size()
        self.model = DDP(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.scheduler = LambdaLR(self.optimizer, lambda s: max(0.0, 0.5 * (1 + math.cos(math.pi * s / total_steps))))
        self.steps = 0

    def step(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        # every process has consumed a batch
        for _ in range(self.world):
            self.scheduler.step()


def stream(rank, steps):
    for i in range(steps):
        g = torch.Generator().manual_seed(i * 17 + rank)
        x = torch.randn(16, 6, generator=g)
        yield x, x[:, :1] - x[:, 1:2]


def main(steps=10):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    rank = dist.get_rank()
    engine = Engine(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1)), total_steps=steps)
    for x, y in stream(rank, steps):
        loss = nn.functional.mse_loss(engine.model(x), y)
        engine.step(loss)
        if rank == 0:
            print(f"step {engine.steps} loss {loss.item():.4f} lr {engine.scheduler.get_last_lr()[0]:.4f}", flush=True)
    if rank == 0:
        print(f"optimizer steps {engine.steps}, scheduler steps {engine.scheduler.last_epoch}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
