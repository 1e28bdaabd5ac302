"""Rank 0 saves a checkpoint every epoch and keeps all of them; the volume for them fills up."""

import os
import pathlib
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

CHECKPOINTS = pathlib.Path(os.environ.get("CKPT_DIR", "checkpoints"))


class Lit:
    """A small trainer in the style of the big ones."""

    def __init__(self, module, max_epochs):
        self.module = nn.parallel.DistributedDataParallel(module)
        self.optimizer = torch.optim.Adam(self.module.parameters(), lr=1e-3)
        self.max_epochs = max_epochs
        self.is_global_zero = dist.get_rank() == 0

    def training_step(self):
        x = torch.randn(32, 256)
        return nn.functional.mse_loss(self.module(x), x.roll(1, dims=1))

    def save_checkpoint(self, epoch):
        if self.is_global_zero:
            state = {"epoch": epoch, "state_dict": self.module.module.state_dict(), "optimizer": self.optimizer.state_dict()}
            torch.save(state, CHECKPOINTS / f"epoch={epoch}.ckpt")
        dist.barrier()

    def fit(self):
        for epoch in range(self.max_epochs):
            for _ in range(5):
                self.optimizer.zero_grad()
                loss = self.training_step()
                loss.backward()
                self.optimizer.step()
            self.save_checkpoint(epoch)
            if self.is_global_zero:
                print(f"Epoch {epoch}: train_loss={loss:.3f}, saved {CHECKPOINTS.name}/epoch={epoch}.ckpt", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    CHECKPOINTS.mkdir(exist_ok=True)
    Lit(nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)), max_epochs=6).fit()
    dist.destroy_process_group()
