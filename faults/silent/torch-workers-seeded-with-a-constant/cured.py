import argparse

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--workers", type=int, default=2)
args = parser.parse_args()


class Crops(Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(1)
        self.images = torch.rand(64, 1, 12, 12, generator=g)
        self.labels = torch.randint(0, 4, (64,), generator=g)

    def __len__(self):
        return 64

    def __getitem__(self, index):
        top, left = np.random.randint(0, 5, size=2)
        return self.images[index, :, top : top + 8, left : left + 8], self.labels[index], int(top * 5 + left)


def worker_init_fn(worker_id):
    np.random.seed((torch.initial_seed() + 1000 * dist.get_rank()) % 2**32)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(args.seed)
    model = DDP(nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 4)))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    data = Crops()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler, num_workers=args.workers, worker_init_fn=worker_init_fn)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        crops = []
        for x, y, crop in loader:
            opt.zero_grad()
            F.cross_entropy(model(x), y).backward()
            opt.step()
            crops += crop.tolist()
    print(f"rank {rank} crops {'-'.join(map(str, crops))}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
