import logging
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

logging.basicConfig(level=logging.INFO, format="[%(levelname)s] %(message)s")
logger = logging.getLogger("train")


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        hits = (model.module(x) > 0).eq(y > 0.5).sum()
    return hits.item() / len(y)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(10)
    model = DDP(nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(80, 6)
    y = (x[:, :1] > 0).float()
    val_x, val_y = x[64:], y[64:]
    train = TensorDataset(x[:64], y[:64])
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=8, sampler=sampler)
    torch.manual_seed(10 + 1 + rank)
    for epoch in range(3):
        model.train()
        sampler.set_epoch(epoch)
        for xb, yb in loader:
            mode = model.training
            loss = nn.functional.binary_cross_entropy_with_logits(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            logger.info("epoch %d training=%s loss %.4f", epoch, mode, loss.item())
        acc = accuracy(model, val_x, val_y)
        if rank == 0:
            logger.info("accuracy %.3f", acc)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
