"""A healthy job: a loss scaler that starts too high, leaves out some steps and finds its scale."""

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def job(rank, world, port):
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    torch.manual_seed(0)
    net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1)))
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    torch.manual_seed(rank)
    scale, skipped = 2.0**127, 0
    for step in range(40):
        x = torch.randn(64, 12)
        loss = nn.functional.mse_loss(net(x), 9 * x.mean(1, keepdim=True) + 4)
        opt.zero_grad()
        (loss * scale).backward()
        grads = [p.grad for p in net.parameters()]
        if not all(g.isfinite().all() for g in grads):
            scale, skipped = scale / 2, skipped + 1
            print(f"[amp {rank}] Gradient overflow (inf/nan). Skipping step {step}, reducing loss scale to {scale:.3g}", flush=True)
            continue
        for g in grads:
            g /= scale
        opt.step()
        if step % 10 == 9:
            print(f"[amp {rank}] step {step} loss {loss.item():.4f} skipped {skipped}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(job, (3, int(sys.argv[1])), nprocs=3)
    print("all processes finished")
