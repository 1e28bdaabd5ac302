"""A DistributedSampler that no loader gets.

## What it does
Finds samplers that are made and never handed to anything.

## Why is this bad?
The loader goes on reading the whole data set on every rank.

## Example
```diff
 import torch.distributed as dist
 from torch.utils.data import DataLoader
 from torch.utils.data.distributed import DistributedSampler

 dist.init_process_group("gloo")
 dataset = list(range(64))
 sampler = DistributedSampler(dataset)
-loader = DataLoader(dataset, batch_size=8)
+loader = DataLoader(dataset, batch_size=8, sampler=sampler)
 for epoch in range(3):
     sampler.set_epoch(epoch)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import assigned_to
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT063",
    symptom="perf.unexpected-parallelization-or-device",
    cause="data-not-sharded",
    pattern="fix-dataset-api-usage",
    do="Pass it to the loader: `DataLoader(dataset, sampler=sampler, …)`.",
    needs=("DistributedSampler",),
)


def check(context: Context) -> Iterator[Hit]:
    """A variable that is only ever asked for `set_epoch`."""
    for call, scope in context.calls("torch.utils.data.DistributedSampler"):
        for name in assigned_to(context, call) if isinstance(context.module.parents[call][0], ast.Assign) else ():
            uses = [
                n
                for n in ast.walk(scope.node)
                if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
            ]
            real = [
                n
                for n in uses
                if not (isinstance(p := context.module.parents[n][0], ast.Attribute) and p.attr == "set_epoch")
            ]
            if not real:
                yield Hit(call, f"`{name}` is made, but no loader gets it")
