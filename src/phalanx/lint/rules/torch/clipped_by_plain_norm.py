"""Gradients of an FSDP model are clipped by the norm of one shard.

## What it does
Finds `torch.nn.utils.clip_grad_norm_` on the parameters of a FullyShardedDataParallel model.

## Why is this bad?
Each rank holds only its shard of the gradients and computes the norm of that shard, so ranks scale by different
factors.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.distributed.fsdp import FullyShardedDataParallel

 dist.init_process_group("gloo")
 model = FullyShardedDataParallel(torch.nn.Linear(4, 1))
 model(torch.randn(8, 4)).sum().backward()
-torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
+model.clip_grad_norm_(1.0)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import FSDP
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT041",
    symptom="perf.unexpected-intermediate-result",
    cause="gradient-norm-of-one-shard",
    pattern="fix-distributed-api-usage",
    do="Call the model's own `clip_grad_norm_`, which reduces the norm over all shards.",
    needs=("clip_grad_norm_",),
)


def check(context: Context) -> Iterator[Hit]:
    """The parameters that are clipped."""
    for call, scope in context.calls("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad.clip_grad_norm_"):
        first = call.args[0] if call.args else None
        model = first.func.value if isinstance(first, ast.Call) and isinstance(first.func, ast.Attribute) else None
        values = context.values(model, scope)
        if values and all(value.type == FSDP for value in values):
            yield Hit(call, "This clips an FSDP model by the norm of this rank's shard only")
