import os
import time

import horovod.torch as hvd
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 15)
        self.b = nn.Linear(15, 1)

    def forward(self, x):
        return self.b(torch.sigmoid(self.a(x)))


def batches(n):
    for step in range(n):
        g = torch.Generator().manual_seed(step * hvd.size() + hvd.rank())
        x = torch.rand(10, 5, generator=g)
        yield x, x.sum(1, keepdim=True)


def main():
    hvd.init()
    torch.manual_seed(os.getpid())
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3 * hvd.size())
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    for x, y in batches(12):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    total = sum(p.detach().double().sum() for p in model.parameters())
    print(f"rank {hvd.rank()} loss {loss.item():.4f} weights {total.item():.8f}", flush=True)


if __name__ == "__main__":
    main()
