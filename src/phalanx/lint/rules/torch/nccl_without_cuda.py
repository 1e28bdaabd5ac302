"""The NCCL backend in a job that never uses a GPU.

## What it does
Finds programs that make the process group with `nccl` although nothing in them is ever put on a CUDA device.

## Why is this bad?
NCCL moves data between GPUs only. With tensors on the CPU the first collective fails; in a build without CUDA even
the group cannot be made.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

-dist.init_process_group("nccl")
+dist.init_process_group("gloo")
 model = DistributedDataParallel(torch.nn.Linear(4, 1))
 model(torch.randn(8, 4)).sum().backward()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.infer import DDP
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT013",
    symptom="comm.setup-failure",
    cause="backend-not-built",
    pattern="fix-communication-configuration",
    do="Use the backend `gloo`, or put model and data on the rank's GPU.",
    needs=("nccl",),
)


def check(context: Context) -> Iterator[Hit]:
    """Literal `nccl`, tensors in the same program, and no word of CUDA."""
    if context.backends != {"nccl"} or not context.calls(INIT) or context.has_unknown_imports or context.is_managed:
        return
    trains = context.calls_in_program(DDP) or context.methods_in_program("backward")
    if trains and not context.mentions("cuda", ".to(", "device", "fully_shard", "gpu"):
        yield Hit(context.calls(INIT)[0][0], "The backend is NCCL, but nothing in this program is put on a GPU")
