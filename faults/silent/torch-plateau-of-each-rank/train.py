import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def datasets():
    g = torch.Generator().manual_seed(31)
    x = torch.randn(64, 5, generator=g)
    train = TensorDataset(x, x.sum(1, keepdim=True))
    xv = torch.randn(16, 5, generator=g)
    yv = xv.sum(1, keepdim=True)
    yv[1::2] = 30.0  # every second record of the validation set is mislabelled
    return train, TensorDataset(xv, yv)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    total, count = 0.0, 0
    for x, y in loader:
        total += nn.functional.mse_loss(model(x), y, reduction="sum").item()
        count += len(x)
    model.train()
    return total / count


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(2)
    train, val = datasets()
    sampler = DistributedSampler(train)
    train_loader = DataLoader(train, batch_size=16, sampler=sampler)
    val_loader = DataLoader(val, batch_size=8, sampler=DistributedSampler(val, shuffle=False))
    model = DDP(nn.Linear(5, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=0.01)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for x, y in train_loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        val_loss = validate(model, val_loader)
        scheduler.step(val_loss)
        lr = optimizer.param_groups[0]["lr"]
        if rank == 0:
            print(f"epoch {epoch} val {val_loss:.4f}", flush=True)
    print(f"rank {rank} lr {lr:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
