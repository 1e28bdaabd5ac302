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

from record_models import make

kind, size, seconds, keep = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
modes, out = sys.argv[5].split(","), Path(sys.argv[6])
BLOCK = 0.5  # seconds that a block of steps takes at least: short ones, because the machine drifts

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
net, layers, inputs, loss_of = make(size)
parameters = sum(one.numel() for one in net.parameters())
of_layers = sum(one.numel() for layer in layers for one in layer.parameters())
if kind == "ddp":
    net = nn.parallel.DistributedDataParallel(net)
else:
    from torch.distributed.fsdp import fully_shard

    for layer in layers:
        fully_shard(layer)
    net = fully_shard(net)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)


def run(count: int) -> tuple[float, float]:
    """Processor and wall seconds of a step; all threads of the process are in it, the recorder's and Gloo's too."""
    dist.barrier()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        optimizer.zero_grad()
        loss_of(net(inputs)).backward()
        optimizer.step()
    return (time.process_time() - cpu) / count, (time.perf_counter() - wall) / count


recording = sys.modules["phalanx_record.recording"]
recorder = recording.current[0]
quick = recorder._quick
keepers = {
    mode: recording.Keeper(
        dataclasses.replace(recorder.settings, mode=mode),
        recorder.journal,
        recorder.training,
        recorder.write,
        recorder._lock,
        recorder._quick,
    )
    for mode in modes
}


def switch(mode: str) -> None:
    """Without one the kernels are taken out too: what is measured against must have nothing of the recorder in its way."""
    recording.dispatch.step_aside()
    recorder.is_stopped = mode == "off"
    if mode != "off":
        recorder.keep_with(keepers[mode])
        recorder.stand_between()


def counted(mode: str) -> tuple[int, int, int]:
    ring = getattr(keepers.get(mode), "_ring", None)
    kept = ring.bytes_kept if ring is not None else recorder.journal.bytes_of_tensors
    more = (quick.shared.bytes_of_log, quick.shared.bytes_kept) if quick is not None else (0, 0)
    return recorder._numbering.calls, recorder.journal.bytes_of_log + more[0], kept + more[1]


def bytes_read() -> float:
    """Of tensors, a step, for fingerprints: counted in two steps that are not timed."""
    journal, sizes = recorder.journal, []
    really = journal.prints

    def prints(prefix: str, held: list[Any], *more: Any, **named: Any) -> Any:
        sizes.append(sum(one.size for one in held))
        return really(prefix, held, *more, **named)

    journal.prints = prints
    before = quick.shared.bytes_read if quick is not None else 0
    run(2)
    del journal.prints
    return (sum(sizes) + (quick.shared.bytes_read - before if quick is not None else 0)) / 2


# DDP lays out its buckets, optimizers make their state, rings take their memory: both halves of it.
for mode in ("off", *modes):
    switch(mode)
    run(3 if mode != "ring" else 4 * keep)
switch(modes[0])
read = bytes_read()
switch("off")
slowest = torch.tensor(run(4)[1])
dist.all_reduce(slowest, dist.ReduceOp.MAX)
# Whole stretches of a ring in every block, or some would have a snapshot more than others.
steps = max(1, round(BLOCK / float(slowest) / keep)) * keep
rounds = min(80, max(5, round(seconds / (float(slowest) * steps * (1 + len(modes))))))
rows: list[dict[str, Any]] = []
for number in range(rounds):
    order = ["off", *modes]
    turn = number // 2 % len(order)
    order = order[turn:] + order[:turn]
    for mode in order if number % 2 else reversed(order):
        switch(mode)
        before = counted(mode)
        cpu, wall = run(steps)
        calls, log, tensors = ((now - then) / steps for now, then in zip(counted(mode), before, strict=True))
        rows.append(
            {"round": number, "mode": mode, "cpu": cpu, "wall": wall, "calls": calls, "log": log, "kept": tensors}
        )
switch(modes[0])
ring = getattr(keepers.get("ring"), "_ring", None)
found = {
    "parameters": parameters,
    "of_layers": of_layers,
    "read": read,
    "rows": rows,
    "ring": ring.most_bytes if ring is not None else 0,
}
(out / f"{dist.get_rank()}.json").write_text(json.dumps(found))
dist.destroy_process_group()
