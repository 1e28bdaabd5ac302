"""Image-text style trainer: two towers, contrastive loss, DDP."""
import argparse
import logging
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
log = logging.getLogger(__name__)


class Pairs(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(11)
        self.a = torch.randn(n, 12, generator=g)
        self.b = self.a @ torch.randn(12, 10, generator=g) + 0.1 * torch.randn(n, 10, generator=g)

    def __len__(self):
        return len(self.a)

    def __getitem__(self, i):
        return self.a[i], self.b[i]


class TwoTowers(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.left = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, dim))
        self.right = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, dim))
        self.temperature = nn.Parameter(torch.tensor(1.0))

    def forward(self, batch):
        a, b = batch
        a, b = F.normalize(self.left(a), dim=-1), F.normalize(self.right(b), dim=-1)
        return a @ b.t() * self.temperature.exp()


class Trainer:
    def __init__(self, args):
        self.args = args
        self.rank = int(os.environ["RANK"])
        self.model = DistributedDataParallel(TwoTowers())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.lr)
        data = Pairs(128)
        self.sampler = DistributedSampler(data, shuffle=True, seed=3)
        self.loader = DataLoader(data, batch_size=args.batch_size, sampler=self.sampler)

    def train_step(self, batch):
        out = self.model(batch)
        target = torch.arange(len(out))
        loss = (F.cross_entropy(out, target) + F.cross_entropy(out.t(), target)) / 2
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self):
        for epoch in range(self.args.epochs):
            self.sampler.set_epoch(epoch)
            losses = [self.train_step(batch) for batch in self.loader]
            if self.rank == 0:
                log.info("epoch %d loss %.4f", epoch, sum(losses) / len(losses))
        total = sum(p.double().abs().sum() for p in self.model.parameters()).item()
        log.info("rank %d checksum %.9f", self.rank, total)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-2)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    Trainer(parser.parse_args()).fit()
    dist.destroy_process_group()
