import argparse
import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class AccumulatingTrainer:
    def __init__(self, model, optimizer, accumulate):
        self.model, self.optimizer, self.accumulate = model, optimizer, accumulate

    def backward(self, micro_batches):
        total = 0.0
        for k, (x, y) in enumerate(micro_batches, 1):
            with contextlib.nullcontext() if k == len(micro_batches) else self.model.no_sync():
                loss = nn.functional.mse_loss(self.model(x), y) / len(micro_batches)
                loss.backward()
            total += loss.item()
        return total

    def run(self, loader):
        pending = []
        for batch in loader:
            pending.append(batch)
            if len(pending) == self.accumulate:
                self.optimizer.zero_grad()
                loss = self.backward(pending)
                self.optimizer.step()
                pending = []
        return loss


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--accumulate", type=int, default=3)
    p.add_argument("--epochs", type=int, default=2)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(6)
    model = DDP(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)))
    trainer = AccumulatingTrainer(model, torch.optim.SGD(model.parameters(), lr=0.1), args.accumulate)
    x = torch.randn(144, 4)
    ds = TensorDataset(x, x.prod(1, keepdim=True))
    sampler = DistributedSampler(ds)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        loss = trainer.run(DataLoader(ds, batch_size=6, sampler=sampler))
        if rank == 0:
            print(f"epoch {epoch} loss {loss:.4f}", flush=True)
    value = sum((p.detach().double() ** 2).sum() for p in model.parameters()).item()
    print(f"rank {rank} fingerprint {value:.10f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
