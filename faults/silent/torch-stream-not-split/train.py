"""Streaming training data: JSON lines, tokenised on the fly."""
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


class JsonLines(IterableDataset):
    def __init__(self, path):
        self.path = path

    def records(self):
        with open(self.path) as f:
            for line in f:
                yield json.loads(line)

    def __iter__(self):
        yield from self.records()


def collate(records):
    return [r["id"] for r in records], torch.tensor([r["x"] for r in records]), torch.tensor([r["y"] for r in records])


def write_data(path):
    g = torch.Generator().manual_seed(3)
    with open(path, "w") as f:
        for i in range(96):
            x = torch.randn(4, generator=g)
            print(json.dumps({"id": f"r{i:03d}", "x": x.tolist(), "y": float(x.sum())}), file=f)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    path = "data.jsonl"
    if rank == 0:
        write_data(path)
    dist.barrier()
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 1))
    opt = torch.optim.Adam(model.parameters(), lr=0.05)
    for step, (ids, x, y) in enumerate(DataLoader(JsonLines(path), batch_size=8, collate_fn=collate)):
        if step == 0:
            print(f"rank {rank} read {' '.join(ids[:4])}", flush=True)
        loss = nn.functional.mse_loss(model(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"rank {rank} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
