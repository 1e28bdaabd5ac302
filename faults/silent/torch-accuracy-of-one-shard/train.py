import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Digits(Dataset):
    def __init__(self, train):
        g = torch.Generator().manual_seed(0 if train else 1)
        n = 128 if train else 60
        self.y = torch.arange(n) % 5
        self.x = torch.nn.functional.one_hot(self.y, 10).float() + 0.9 * torch.randn(n, 10, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Runner:
    def __init__(self):
        self.rank = int(os.environ["RANK"])
        torch.manual_seed(0)
        self.net = DDP(nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 5)))
        self.opt = torch.optim.Adam(self.net.parameters(), 5e-3)
        self.train_set, self.test_set = Digits(True), Digits(False)
        self.train_sampler = DistributedSampler(self.train_set)
        self.train_loader = DataLoader(self.train_set, 16, sampler=self.train_sampler)
        self.test_loader = DataLoader(self.test_set, 15, sampler=DistributedSampler(self.test_set, shuffle=False))

    def train(self, epoch):
        self.net.train()
        self.train_sampler.set_epoch(epoch)
        for x, y in self.train_loader:
            self.opt.zero_grad()
            nn.functional.cross_entropy(self.net(x), y).backward()
            self.opt.step()

    def test(self):
        self.net.eval()
        correct = total = 0
        with torch.no_grad():
            for x, y in self.test_loader:
                correct += (self.net(x).argmax(1) == y).sum().item()
                total += y.numel()
        acc = 100.0 * correct / total
        print(f"rank {self.rank} test accuracy {acc:.2f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    runner = Runner()
    for epoch in range(2):
        runner.train(epoch)
    runner.test()
    dist.destroy_process_group()
