import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset


def make(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=g)
    return TensorDataset(x, (x[:, 0] > x[:, 1]).long())


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = torch.zeros(2)
    for x, y in loader:
        correct[0] += (model(x).argmax(1) == y).sum()
        correct[1] += len(y)
    dist.all_reduce(correct)
    model.train()
    return correct[0].item() / correct[1].item(), int(correct[1])


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    train_set, val_set = make(96, 1), make(25, 2)
    train_sampler = DistributedSampler(train_set)
    train_loader = DataLoader(train_set, batch_size=8, sampler=train_sampler)
    val_loader = DataLoader(Subset(val_set, range(rank, len(val_set), world)), batch_size=5)
    model = DDP(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2)))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        train_sampler.set_epoch(epoch)
        for x, y in train_loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
        accuracy, count = evaluate(model.module, val_loader)
        if rank == 0:
            print(f"epoch {epoch} val acc {accuracy:.4f} over {count} samples of {len(val_set)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
