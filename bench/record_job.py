"""The job that record_overhead.py measures: blocks of steps without a recorder and with it in each mode, in one process."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

kind, width, depth, batch, rounds, steps = sys.argv[1], *map(int, sys.argv[2:7])
modes, out = sys.argv[7].split(","), Path(sys.argv[8])


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
parameters = sum(one.numel() for one in net.parameters())
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
inputs = torch.randn(batch, width)


def run(count: int) -> tuple[float, float]:
    """Processor and wall seconds of a step; all threads of the process are in it, the recorder's and Gloo's too."""
    dist.barrier()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        optimizer.zero_grad()
        net(inputs).square().mean().backward()
        optimizer.step()
    return (time.process_time() - cpu) / count, (time.perf_counter() - wall) / count


recording = sys.modules["phalanx_record.recording"]
recorder = recording.current[0]
keepers = {
    mode: recording.Keeper(
        dataclasses.replace(recorder.settings, mode=mode),
        recorder.journal,
        recorder.training,
        recorder.write,
        recorder._lock,
    )
    for mode in modes
}


def switch(mode: str) -> None:
    """Without one the kernels are taken out too: what is measured against must have nothing of the recorder in its way."""
    recording.dispatch.step_aside()
    recorder.is_stopped = mode == "off"
    if mode != "off":
        recorder._keeper = keepers[mode]
        recording.dispatch.stand_between(recorder.handle)


def counted(mode: str) -> tuple[int, int]:
    ring = getattr(keepers.get(mode), "_ring", None)
    return recorder.journal.bytes_of_log, ring.bytes_kept if ring is not None else recorder.journal.bytes_of_tensors


for mode in ("off", *modes, *modes):  # DDP lays out its buckets, optimizers make their state, rings take their memory
    switch(mode)
    run(max(steps, 9))
rows: list[dict[str, Any]] = []
for number in range(rounds):
    order = ["off", *modes]
    for mode in order if number % 2 else reversed(order):
        switch(mode)
        before = counted(mode)
        cpu, wall = run(steps)
        log, tensors = (now - then for now, then in zip(counted(mode), before, strict=True))
        rows.append(
            {"round": number, "mode": mode, "cpu": cpu, "wall": wall, "log": log / steps, "kept": tensors / steps}
        )
switch(modes[0])
ring = getattr(keepers.get("ring"), "_ring", None)
found = {"parameters": parameters, "rows": rows, "ring": ring.most_bytes if ring is not None else 0}
(out / f"{dist.get_rank()}.json").write_text(json.dumps(found))
dist.destroy_process_group()
