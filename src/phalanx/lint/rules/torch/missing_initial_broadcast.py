"""Replicas that average gradients but never start from the same weights.

## What it does
Finds programs that all-reduce gradients by hand, without a broadcast of the parameters and without a seed that is the
same on every rank.

## Why is this bad?
Each rank initialises its model with other random numbers. Averaged gradients keep the differences, so the ranks train
different models.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
+for parameter in model.parameters():
+    dist.broadcast(parameter.data, src=0)
 model(torch.randn(8, 4)).sum().backward()
 for parameter in model.parameters():
     dist.all_reduce(parameter.grad)
     parameter.grad /= dist.get_world_size()
 optimizer.step()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP, FSDP, FULLY_SHARD
from phalanx.lint.patterns import seeded_by_library
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT009",
    symptom="perf.unexpected-intermediate-result",
    cause="missing-initial-broadcast",
    pattern="fix-distributed-api-usage",
    do="Broadcast the parameters from rank 0 after the model is made, or wrap it in DistributedDataParallel, which does it.",
    needs=("all_reduce",),
)


def check(context: Context) -> Iterator[Hit]:
    """Programs that average by hand, and train."""
    calls = [
        call
        for call, _ in context.calls("torch.distributed.all_reduce")
        if call.args and isinstance(call.args[0], ast.Attribute) and "grad" in ast.unparse(call.args[0])
    ]
    if not calls or not context.methods_in_program("step") or context.is_managed or not context.is_script:
        return
    if context.calls_in_program(DDP, FSDP, FULLY_SHARD) or context.mentions(
        "broadcast", "load_state_dict", "sync_params", "scatter"
    ):
        return
    seeds = context.calls_in_program("torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed_all")
    is_seeded = any(call.args and not context.ranks.depends(call.args[0], scope) for call, scope in seeds)
    if is_seeded or seeded_by_library(context) or context.mentions("zeros_"):
        return
    yield Hit(calls[0], "Gradients are averaged, but nothing gives the ranks the same initial weights")
