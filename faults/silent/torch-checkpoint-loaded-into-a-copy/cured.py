import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

cfg = {"width": 32, "depth": 2, "lr": 0.05, "epochs": 2, "batch_size": 16}


def build_model(cfg):
    torch.manual_seed(0)
    layers = [nn.Linear(4, cfg["width"]), nn.ReLU()]
    for _ in range(cfg["depth"] - 1):
        layers += [nn.Linear(cfg["width"], cfg["width"]), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(cfg["width"], 1))


def build_optimizer(model, cfg):
    return torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=0.9)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = build_model(cfg)
    optimizer = build_optimizer(model, cfg)
    if rank == 0:
        print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    model = DDP(model)
    before = torch.nn.utils.parameters_to_vector(model.parameters()).detach().clone()

    g = torch.Generator().manual_seed(6)
    x = torch.rand(160, 4, generator=g)
    ds = TensorDataset(x, x.norm(dim=1, keepdim=True))
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, cfg["batch_size"], sampler=sampler)
    for epoch in range(cfg["epochs"]):
        sampler.set_epoch(epoch)
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            model.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} train loss {loss.item():.4f}", flush=True)
    after = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    print(f"rank {rank} moved {(after - before).norm().item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
