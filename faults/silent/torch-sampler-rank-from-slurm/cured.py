import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Numbers(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randn(6, generator=g), torch.tensor(float(i % 3)), i


def main():
    dist.init_process_group("gloo")
    world_size = int(os.environ["WORLD_SIZE"])
    dataset = Numbers()
    sampler = DistributedSampler(
        dataset,
        num_replicas=world_size,
        rank=int(os.environ["RANK"]),
        shuffle=True,
    )
    loader = DataLoader(dataset, batch_size=10, sampler=sampler)
    torch.manual_seed(0)
    net = DDP(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1)))
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    ids = []
    for x, y, i in loader:
        loss = (net(x).squeeze(1) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        ids.extend(i.tolist())
    gathered = [None] * world_size
    dist.all_gather_object(gathered, ids)
    if dist.get_rank() == 0:
        seen = set().union(*map(set, gathered))
        print(f"epoch done, loss {loss.item():.3f}, never seen {len(dataset) - len(seen)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
