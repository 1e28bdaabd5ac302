"""DistributedSampler.set_epoch is never called: every epoch has the same order."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(5)
    number = torch.arange(512)
    x = torch.randn(512, 16)
    data = TensorDataset(number, x, x[:, :4].argmax(1))
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    model = DistributedDataParallel(nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    orders = []
    for epoch in range(4):
        seen = []
        for which, x, y in loader:
            seen += which.tolist()
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"[{rank}] epoch {epoch} loss {loss.item():.4f} first samples {seen[:5]}", flush=True)
        orders.append(tuple(seen))
    if len(set(orders)) < len(orders):
        print(f"[{rank}] warning: {len(orders)} epochs, {len(set(orders))} different order(s) of the data", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
