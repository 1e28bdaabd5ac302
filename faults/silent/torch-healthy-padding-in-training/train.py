import logging
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("train")


def train(model, loader, optimizer, criterion):
    for features, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(features), labels)
        loss.backward()
        optimizer.step()
    return loss.detach()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    x = torch.rand(101, 3)
    dataset = TensorDataset(x, x.sum(1, keepdim=True))
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=17, sampler=sampler)
    model = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        loss = train(model, loader, optimizer, nn.MSELoss())
        dist.all_reduce(loss)
        if dist.get_rank() == 0:
            log.info("epoch %d loss %.4f", epoch, loss.item() / dist.get_world_size())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
