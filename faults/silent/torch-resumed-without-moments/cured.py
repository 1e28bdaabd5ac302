import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

CKPT = "checkpoint.pt"


def batch(step, rank):
    g = torch.Generator().manual_seed(step * 2 + rank)
    x = torch.randn(16, 8, generator=g)
    return x, x[:, :2].prod(1, keepdim=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--save-every", type=int, default=3)
    parser.add_argument("--stop-after", type=int, default=None)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    start = 0
    if args.resume and os.path.exists(CKPT):
        state = torch.load(CKPT, weights_only=True)
        model.module.load_state_dict(state["model"])
        if "optimizer" in state:
            optimizer.load_state_dict(state["optimizer"])
        start = state["step"]
        if rank == 0:
            print(f"resumed from step {start}", flush=True)
    for step in range(start + 1, args.steps + 1):
        x, y = batch(step, rank)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.save_every == 0:
            if rank == 0:
                state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                torch.save(state, CKPT + ".tmp")
                os.replace(CKPT + ".tmp", CKPT)
            dist.barrier()
        if args.stop_after == step:
            break
    if rank == 0:
        updates = int(next(iter(optimizer.state.values()))["step"])
        print(f"loss {loss.item():.5f}; Adam has seen {updates} of {step} updates", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
