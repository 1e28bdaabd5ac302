"""Each rank starts as many loader workers as the machine has cores.

## What it does
Finds `num_workers=os.cpu_count()` in distributed programs.

## Why is this bad?
With n ranks on a host n times too many processes compete for the cores, and each holds memory.

## Example
```diff
 import os

 import torch.distributed as dist
 from torch.utils.data import DataLoader
 from torch.utils.data.distributed import DistributedSampler

 dist.init_process_group("gloo")
 dataset = list(range(64))
+workers = os.cpu_count() // int(os.environ["LOCAL_WORLD_SIZE"])
-loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset), num_workers=os.cpu_count())
+loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset), num_workers=workers)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT067",
    symptom="perf.low-efficiency",
    cause="too-many-loader-workers",
    pattern="fix-memory-or-core-setting",
    do="Divide the number of cores by the ranks of the host (LOCAL_WORLD_SIZE).",
    needs=("cpu_count",),
)

_COUNTS = ("os.cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count")


def check(context: Context) -> Iterator[Hit]:
    """The number itself, not a part of it."""
    if not context.is_torch_job:
        return
    for call, scope in context.calls("torch.utils.data.DataLoader"):
        given = keyword(call, "num_workers")
        made, where = context.origin(given, scope) if given is not None else (call, scope)
        if isinstance(made, ast.Call) and context.name(made.func, where) in _COUNTS:
            yield Hit(call, "Every rank of a host starts a worker for each core")
