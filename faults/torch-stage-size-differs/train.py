"""Two pipeline stages; MICRO_BATCH of rank 1 is half of rank 0's, so the sizes of send and recv do not fit."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

WIDTH = 64
MICRO = int(os.getenv("MICRO_BATCH", "32"))
STEPS = 6


def first_stage(stage, opt):
    for step in range(STEPS):
        activations = stage(torch.randn(MICRO, 16))
        dist.send(activations.detach(), dst=1)
        grad = torch.empty_like(activations)
        dist.recv(grad, src=1)
        opt.zero_grad()
        activations.backward(grad)
        opt.step()
        print("stage0", "step", step, "grad norm", round(grad.norm().item(), 5), flush=True)


def last_stage(stage, opt):
    for step in range(STEPS):
        received = torch.empty(MICRO, WIDTH)
        dist.recv(received, src=0)
        received.requires_grad_()
        loss = nn.functional.cross_entropy(stage(received), torch.randint(0, 4, (MICRO,)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        dist.send(received.grad, dst=0)
        print("stage1", "step", step, "loss", round(loss.item(), 5), flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=10))
    torch.manual_seed(2)
    if dist.get_rank() == 0:
        part, loop = nn.Sequential(nn.Linear(16, WIDTH), nn.Tanh()), first_stage
    else:
        part, loop = nn.Linear(WIDTH, 4), last_stage
    print(f"pipeline stage {dist.get_rank()} of {dist.get_world_size()}, micro batch {MICRO}", flush=True)
    loop(part, torch.optim.SGD(part.parameters(), lr=0.1))
    dist.destroy_process_group()
