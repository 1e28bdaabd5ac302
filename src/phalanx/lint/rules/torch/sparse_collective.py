"""A sparse tensor in a collective.

## What it does
Finds tensors made by `to_sparse` or `sparse_coo_tensor` that are broadcast, gathered or scattered.

## Why is this bad?
Only all-reduce on Gloo takes sparse tensors; the other collectives raise an error.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
-adjacency = torch.eye(8).to_sparse()
+adjacency = torch.eye(8)
 dist.broadcast(adjacency, src=0)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT012",
    symptom="fail.not-implemented",
    cause="operation-not-for-sparse-tensors",
    pattern="fix-tensor-api-usage",
    do="Send it as dense (`to_dense()`), or send indices and values apart.",
    needs=("sparse",),
)

_REFUSED = ("torch.distributed.broadcast", "torch.distributed.all_gather", "torch.distributed.reduce", "torch.distributed.scatter", "torch.distributed.gather", "torch.distributed.send")  # fmt: skip


def check(context: Context) -> Iterator[Hit]:
    """The first argument, followed to where it was made."""
    for call, scope in context.calls(*_REFUSED):
        tensor = (
            call.args[1]
            if context.name(call.func, scope).endswith("all_gather") and len(call.args) > 1
            else call.args[0]
            if call.args
            else None
        )
        if tensor is not None and _is_sparse(tensor, context, scope):
            yield Hit(
                call, f"`{context.text(tensor)}` is a sparse tensor, which `{context.text(call.func)}` does not support"
            )


def _is_sparse(node: ast.expr, context: Context, scope: Scope) -> bool:
    for made, where in context.origins(node, scope):
        if isinstance(made, ast.Call) and (
            getattr(made.func, "attr", "") in ("to_sparse", "to_sparse_csr")
            or context.name(made.func, where) in ("torch.sparse_coo_tensor", "torch.sparse_csr_tensor")
        ):
            return True
    return False
