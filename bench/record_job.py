"""The job that record_overhead.py measures: blocks of steps with the recorder on and off in turns, in the same process."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

kind, width, depth, batch, blocks, steps, out = sys.argv[1], *map(int, sys.argv[2:7]), Path(sys.argv[7])


def model() -> nn.Module:
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    made = nn.Sequential(*layers, nn.Linear(width, 1))
    if kind == "ddp":
        return nn.parallel.DistributedDataParallel(made)
    from torch.distributed.fsdp import fully_shard

    for layer in made:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    return fully_shard(made)


dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
net = model()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
inputs = torch.randn(batch, width)


def run() -> tuple[float, float]:
    """Processor seconds and wall seconds of a block; all threads of the process are in it, the recorder's and Gloo's too."""
    dist.barrier()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        optimizer.zero_grad()
        net(inputs).square().mean().backward()
        optimizer.step()
    return time.process_time() - cpu, time.perf_counter() - wall


modules = [module for name, module in sys.modules.items() if name == "phalanx_record.recording"]
recorder = modules[0].current[0]
run()  # DDP lays out its buckets, optimizers make their state
pairs = []
bytes_before = 0
for number in range(2 * blocks):
    recorder.is_stopped = number % 2 == 0
    before = recorder.journal.bytes_of_tensors, recorder.journal.bytes_of_log
    cpu, wall = run()
    after = recorder.journal.bytes_of_tensors, recorder.journal.bytes_of_log
    pairs.append(
        [number % 2, cpu / steps, wall / steps, *((b - a) / steps for a, b in zip(before, after, strict=True))]
    )
recorder.is_stopped = False
ring = getattr(recorder._keeper, "_ring", None)
found = {
    "rank": dist.get_rank(),
    "parameters": sum(p.numel() for p in net.parameters()),
    "blocks": pairs,
    "ring": ring.most_bytes if ring is not None else 0,
}
(out / f"{dist.get_rank()}.json").write_text(json.dumps(found))
dist.destroy_process_group()
