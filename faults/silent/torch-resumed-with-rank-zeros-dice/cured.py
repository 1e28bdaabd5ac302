import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def gather_rng():
    states = [torch.empty_like(torch.get_rng_state()) for _ in range(dist.get_world_size())]
    dist.all_gather(states, torch.get_rng_state())
    return torch.stack(states)


def save(path, model, optimizer, step):
    everyones = gather_rng()
    if dist.get_rank() == 0:
        torch.save(
            {
                "model": model.module.state_dict(),
                "optimizer": optimizer.state_dict(),
                "rng": everyones,
                "step": step,
            },
            path,
        )
    dist.barrier()


def load(path, model, optimizer):
    state = torch.load(path, weights_only=True)
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    rng = state["rng"]
    torch.set_rng_state(rng if rng.dim() == 1 else rng[dist.get_rank()].clone())
    return state["step"]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--resume", action="store_true")
    ap.add_argument("--steps", type=int, default=12)
    ap.add_argument("--stop-after", type=int, default=0)
    ap.add_argument("--ckpt", default="model.ckpt")
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(3)
    model = DDP(nn.Sequential(nn.Linear(10, 50), nn.ReLU(), nn.Dropout(0.4), nn.Linear(50, 2)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    torch.manual_seed(1000 + rank)
    start = load(args.ckpt, model, optimizer) if args.resume and os.path.exists(args.ckpt) else 0
    for step in range(start, args.steps):
        g = torch.Generator().manual_seed(step * 5 + rank)
        x = torch.randn(10, 10, generator=g)
        loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 3 == 2:
            save(args.ckpt, model, optimizer, step + 1)
        if step + 1 == args.stop_after:
            break
    print(f"rank {rank} dice {torch.rand(1).item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
