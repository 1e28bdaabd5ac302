import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Clicks(Dataset):
    """User clicks: a few item ids and whether the last was bought."""

    def __init__(self, n=200, items=50):
        g = torch.Generator().manual_seed(2)
        self.ids = torch.randint(0, items, (n, 5), generator=g)
        self.label = (self.ids.sum(1) % 2).float()

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return self.ids[index], self.label[index]


class Recommender(nn.Module):
    def __init__(self, items=50, dim=8):
        super().__init__()
        self.embed = nn.Embedding(items, dim)
        self.mlp = nn.Sequential(nn.Linear(dim * 5, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, ids):
        return self.mlp(self.embed(ids).flatten(1)).squeeze(-1)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(8)
    model = Recommender()
    model = DDP(model)
    data = Clicks()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=20, sampler=sampler)
    opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for ids, label in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(ids), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"rank {rank} final loss {loss.item():.4f} embedding {model.module.embed.weight.detach().double().norm().item():.9f}", flush=True)
    dist.destroy_process_group()


main()
