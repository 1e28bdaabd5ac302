import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

GRAD_ACCUM = int(os.environ.get("GRAD_ACCUM", 4))
STEPS = 8


class Counter(nn.Module):
    """A bias of its own whose gradient counts the samples."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 20), nn.ReLU(), nn.Linear(20, 1))
        self.offset = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return self.body(x) + self.offset


def get_batch(step, micro, rank):
    g = torch.Generator().manual_seed(step * 1000 + micro * 10 + rank)
    x = torch.rand(8, 8, generator=g)
    return x, x.sum(1, keepdim=True)


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(Counter())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(STEPS):
    expected = 0.0
    for micro in range(GRAD_ACCUM):
        x, y = get_batch(step, micro, rank)
        model.require_backward_grad_sync = micro == GRAD_ACCUM - 1
        out = model(x)
        loss = (out - y).mean() / GRAD_ACCUM
        loss.backward()
        expected += 1 / GRAD_ACCUM
    if step == 0 and rank == 0:
        print(f"gradient holds {100 * model.module.offset.grad.item() / expected:.0f}% of the batch", flush=True)
    optimizer.step()
    if rank == 0:
        print(f"step {step} loss {loss.item() * GRAD_ACCUM:.4f}", flush=True)
    model.zero_grad()
dist.destroy_process_group()
