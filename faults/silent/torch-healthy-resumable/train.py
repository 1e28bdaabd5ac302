import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import StepLR


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--resume", action="store_true")
    p.add_argument("--steps", type=int, default=12)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = StepLR(optimizer, step_size=4, gamma=0.5)
    torch.manual_seed(50 + rank)
    start = 0
    if args.resume and os.path.exists("full.pt"):
        state = torch.load("full.pt", weights_only=True)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        torch.set_rng_state(state["rng"][rank])
        start = state["step"]
    for step in range(start, args.steps):
        g = torch.Generator().manual_seed(step * world + rank)
        x = torch.randn(8, 6, generator=g)
        loss = nn.functional.mse_loss(model(x), x[:, :1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 3 == 2:
            states = [torch.empty_like(torch.get_rng_state()) for _ in range(world)]
            dist.all_gather(states, torch.get_rng_state())
            if rank == 0:
                state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "rng": states, "step": step + 1}
                torch.save(state, "full.pt.new")
                os.replace("full.pt.new", "full.pt")
            dist.barrier()
    print(f"rank {rank} loss {loss.item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
