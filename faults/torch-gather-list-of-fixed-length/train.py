"""The evaluation gathers features into a list that was written for two processes; the job now has three."""

import argparse

import torch
import torch.distributed as dist
from torch import nn

NUM_PROCS = 2


class Siamese(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, a, b):
        return nn.functional.cosine_similarity(self.tower(a), self.tower(b))


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rank = dist.get_rank()
        self.net = nn.parallel.DistributedDataParallel(Siamese())
        self.opt = torch.optim.SGD(self.net.parameters(), lr=cfg.lr)

    def log(self, text):
        if self.rank == 0:
            print(f"[Trainer] {text}", flush=True)

    def train_epoch(self, n):
        for _ in range(self.cfg.steps):
            a = torch.randn(24, 32)
            same = torch.rand(24) < 0.5
            b = torch.where(same[:, None], a + 0.1 * torch.randn_like(a), torch.randn(24, 32))
            loss = nn.functional.mse_loss(self.net(a, b), same.float())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        self.log(f"epoch {n} done, loss={loss:.4f}")

    @torch.no_grad()
    def validate(self):
        features = self.net.module.tower(torch.randn(50, 32))
        everyone = [torch.empty_like(features) for _ in range(NUM_PROCS)]
        dist.all_gather(everyone, features)
        bank = torch.cat(everyone)
        self.log(f"feature bank {tuple(bank.shape)}, spread {bank.std():.4f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--steps", type=int, default=10)
    dist.init_process_group("gloo")
    trainer = Trainer(p.parse_args())
    for n in range(2):
        trainer.train_epoch(n)
        trainer.validate()
    dist.destroy_process_group()
