"""A name that torch.distributed does not have.

## What it does
Compares attributes of `torch.distributed.ReduceOp` and functions of `torch.distributed` with those that exist.

## Why is this bad?
The script stops with AttributeError, and often only at the end of an epoch, when the line is first reached.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 loss = torch.zeros(1)
-dist.all_reduce(loss, op=dist.ReduceOp.MEAN)
+dist.all_reduce(loss, op=dist.ReduceOp.SUM)
+loss /= dist.get_world_size()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT004",
    symptom="fail.attribute-not-found",
    cause="unknown-framework-name",
    pattern="fix-distributed-api-usage",
    do="Use the name that exists.",
    needs=("distributed",),
)

_OPS = ("AVG", "BAND", "BOR", "BXOR", "MAX", "MIN", "PREMUL_SUM", "PRODUCT", "SUM", "RedOpType")
_WRONG = {
    "allreduce": "all_reduce", "allgather": "all_gather", "all_gather_tensor": "all_gather_into_tensor", "get_size": "get_world_size",
    "world_size": "get_world_size", "rank": "get_rank", "get_local_rank": "get_node_local_rank", "local_rank": "get_node_local_rank", "bcast": "broadcast",
    "init_process": "init_process_group", "destroy": "destroy_process_group", "all_reduce_multigpu": "all_reduce", "broadcast_multigpu": "broadcast",
    "all_gather_multigpu": "all_gather", "reduce_multigpu": "reduce", "reduce_scatter_multigpu": "reduce_scatter", "reducescatter": "reduce_scatter", "synchronize": "barrier",
}  # fmt: skip


def check(context: Context) -> Iterator[Hit]:
    """Attributes that are looked up on the module itself."""
    for node, scope in context.module.nodes[ast.Attribute]:
        if not isinstance(node, ast.Attribute):
            continue
        base = context.inference.dotted(node.value, scope) if node.attr in _WRONG or node.attr.isupper() else None
        if base in ("torch.distributed.ReduceOp", "torch.distributed.reduce_op") and node.attr not in _OPS:
            hint = (
                "AVG (NCCL only), or SUM and a division" if node.attr in ("MEAN", "AVERAGE") else ", ".join(_OPS[:-1])
            )
            yield Hit(node, f"`ReduceOp` has no `{node.attr}`", do=f"Use one that exists: {hint}.")
        elif base == "torch.distributed" and node.attr in _WRONG:
            yield Hit(
                node, f"`torch.distributed` has no `{node.attr}`", do=f"Use `torch.distributed.{_WRONG[node.attr]}`."
            )
