import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager


def main(steps=12, period=4):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 18), nn.ReLU(), nn.Linear(18, 1))
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    averager = PeriodicModelAverager(period=period, warmup_steps=0)
    for step in range(steps):
        g = torch.Generator().manual_seed(step * world + rank)
        x = torch.randn(10, 6, generator=g)
        loss = nn.functional.mse_loss(model(x), x.mean(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
        averager.average_parameters(model.parameters())
    for p in model.parameters():
        dist.all_reduce(p.data)
        p.data /= world
    if rank == 0:
        print(f"loss {loss.item():.4f}", flush=True)
        torch.save(model.state_dict(), "averaged.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
