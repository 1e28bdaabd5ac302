import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import LambdaLR


class Trainer:
    path = "last.ckpt"

    def __init__(self, total):
        self.rank = dist.get_rank()
        torch.manual_seed(1)
        self.model = DDP(nn.Sequential(nn.Linear(6, 18), nn.Tanh(), nn.Linear(18, 3)))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5, momentum=0.9)
        self.scheduler = LambdaLR(self.optimizer, lambda s: 1 - s / total)
        self.total, self.step = total, 0

    def save(self):
        if self.rank == 0:
            state = {
                "model": self.model.module.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "step": self.step,
            }
            torch.save(state, self.path)
        dist.barrier()

    def load(self):
        state = torch.load(self.path, weights_only=True)
        self.model.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if "scheduler" in state:
            self.scheduler.load_state_dict(state["scheduler"])
        self.step = state["step"]

    def fit(self, stop_after):
        while self.step < self.total:
            g = torch.Generator().manual_seed(self.step * 7 + self.rank)
            x = torch.randn(12, 6, generator=g)
            loss = nn.functional.cross_entropy(self.model(x), x[:, :3].argmax(1))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            self.step += 1
            if self.step % 2 == 0:
                self.save()
            if self.step == stop_after:
                break
        if self.rank == 0:
            print(f"lr {self.scheduler.get_last_lr()[0]:.4f}, schedule at {self.scheduler.last_epoch} after {self.step} updates", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--stop-after", type=int)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    trainer = Trainer(args.steps)
    if args.resume and os.path.exists(Trainer.path):
        trainer.load()
    trainer.fit(args.stop_after)
    dist.destroy_process_group()
