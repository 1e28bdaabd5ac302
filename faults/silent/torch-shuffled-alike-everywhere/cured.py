import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Spirals(Dataset):
    def __init__(self, n=64):
        t = torch.linspace(0.5, 9, n)
        sign = torch.where(torch.arange(n) % 2 == 0, 1.0, -1.0)
        self.x = torch.stack([sign * t * t.cos(), sign * t * t.sin()], 1) / 9
        self.y = (sign > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return i, self.x[i], self.y[i]


class Trainer:
    def __init__(self, batch_size=8, seed=0):
        self.dataset = Spirals()
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(seed)
        self.loader = DataLoader(self.dataset, batch_size=batch_size, sampler=DistributedSampler(self.dataset, seed=seed))
        self.model = DDP(nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 2)))
        self.optim = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.criterion = nn.CrossEntropyLoss()
        self.seen = []

    def train_epoch(self, epoch):
        if isinstance(self.loader.sampler, DistributedSampler):
            self.loader.sampler.set_epoch(epoch)
        for index, x, y in self.loader:
            self.optim.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optim.step()
            self.seen += index.tolist()
        return loss.item()


def main():
    dist.init_process_group("gloo")
    trainer = Trainer()
    loss = trainer.train_epoch(0)
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, trainer.seen)
    fetched = [i for one in every for i in one]
    if dist.get_rank() == 0:
        print(f"loss {loss:.4f}, distinct samples {len(set(fetched))} of {len(fetched)} fetched", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
