"""A small DDP job that breaks in several ways, as told. Not a test: tests record it and replay it."""

from __future__ import annotations

import fractions
import os
import random
import resource
import sys
import time
from pathlib import Path

import numpy
import torch
import torch.distributed as dist
from torch import nn

kind = sys.argv[1] if len(sys.argv) > 1 else "healthy"
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 10
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(7 + (rank if kind != "alike" else 0))
inputs = torch.from_numpy(numpy.load("data.npy"))
order = list(range(len(inputs)))
if kind == "unseeded":
    random.SystemRandom().shuffle(order)
elif kind != "alike":
    random.shuffle(order)  # unseeded too, but a recording gives it a seed
dataset = torch.utils.data.TensorDataset(inputs[order], inputs[order].sum(1, keepdim=True))
if kind == "nan":
    told = [fractions.Fraction(1, 2)]
    dist.broadcast_object_list(told, 0)
if kind == "full-disk" and rank == 1:
    resource.setrlimit(resource.RLIMIT_FSIZE, (280_000, 280_000))
model = nn.parallel.DistributedDataParallel(
    nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
step = 0
if kind == "told":
    import phalanx

    # Another optimizer steps too, and another model is alive: only what is told counts.
    decoy = nn.Linear(3, 3)
    torch.optim.SGD(decoy.parameters(), lr=0.1).step()
    phalanx.checkpoint(model=model, optimizer=optimizer)


def flip(gradient: torch.Tensor) -> torch.Tensor:
    """One bit of one gradient on rank 1, as a bad memory cell would; only while the file is there."""
    if step == 4 and rank == 1 and Path("flip").exists():
        gradient.view(-1)[5].view(torch.int32).bitwise_xor_(1 << 20)
    return gradient


model.module[3].weight.register_hook(flip)
while step < steps:
    for batch, target in torch.utils.data.DataLoader(dataset, batch_size=8, shuffle=kind not in ("unseeded", "alike")):
        if step == steps:
            break
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch), target)
        loss.backward()
        optimizer.step()
        schedule.step()
        step += 1
        print(f"step {step} loss {loss.item():.6f}", flush=True)
        if kind == "raises" and step == 6 and rank == 1:
            raise ValueError(f"bad sample near {batch[0, 0].item():.4f}")
        if kind == "killed" and step == 8 and rank == 1:
            os.kill(os.getpid(), 9)
        if kind == "stands" and step == 7 and rank == 1:
            time.sleep(600)
        if kind == "slow":
            time.sleep(0.4)
        if kind == "asked" and step == 6 and rank == 1:
            Path("bundle/attempt0/write-recording").touch()
            time.sleep(3)
        if kind == "nan" and step == 6:
            with torch.no_grad():
                model.module[5].bias.fill_(float("nan"))
dist.destroy_process_group()
