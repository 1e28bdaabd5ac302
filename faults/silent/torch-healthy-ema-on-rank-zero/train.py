import copy
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class EMA:
    def __init__(self, model, decay=0.9):
        self.shadow = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(5, 20), nn.Tanh(), nn.Linear(20, 1)))
    ema = EMA(model.module) if rank == 0 else None
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(12):
        g = torch.Generator().manual_seed(step * 2 + rank)
        x = torch.randn(16, 5, generator=g)
        loss = nn.functional.mse_loss(model(x), x.square().sum(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if ema is not None:
            ema.update(model.module)
    if rank == 0:
        x = torch.randn(64, 5)
        with torch.no_grad():
            val = nn.functional.mse_loss(ema.shadow(x), x.square().sum(1, keepdim=True))
        print(f"val of the average {val.item():.4f}", flush=True)
        torch.save(ema.shadow.state_dict(), "ema.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
