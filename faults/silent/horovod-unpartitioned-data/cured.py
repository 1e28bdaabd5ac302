import horovod.torch as hvd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def train():
    hvd.init()
    torch.manual_seed(0)
    features = torch.randn(144, 6)
    dataset = TensorDataset(features, features.pow(2).sum(1, keepdim=True))
    loader = DataLoader(dataset, batch_size=12, sampler=DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank()))
    net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.005 * hvd.size())
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(opt, root_rank=0)
    opt = hvd.DistributedOptimizer(opt, named_parameters=net.named_parameters())
    for i, (x, y) in enumerate(loader):
        if i == 0:
            print(f"rank {hvd.rank()} first batch {x.sum().item():.6f}", flush=True)
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
    if hvd.rank() == 0:
        print(f"loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    train()
