"""A broadcast whose root is another on every rank.

## What it does
Finds `src`, `dst` or `root_rank` arguments that depend on the rank, in collectives over all ranks.

## Why is this bad?
All ranks must name the same root. If each names its own, some send and nobody receives, or the operation is refused.

## Example
```diff
 import torch
 import torch.distributed as dist

 dist.init_process_group("gloo")
 weights = torch.zeros(4)
-dist.broadcast(weights, src=dist.get_rank())
+dist.broadcast(weights, src=0)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import names_in
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument

RULE = Rule(
    code="LCM006",
    symptom="fail.communication-error",
    cause="broadcast-root-differs-between-ranks",
    pattern="fix-distributed-api-usage",
    do="Pass the same rank everywhere, mostly 0; if the root has to be found out, agree on it by an all-reduce first.",
)

_ROOTED = {
    "broadcast": (1, "src"),
    "broadcast_object_list": (1, "src"),
    "scatter": (2, "src"),
    "reduce": (1, "dst"),
    "gather": (2, "dst"),
}
_HOROVOD = {"broadcast": 1, "broadcast_": 1, "broadcast_parameters": 1, "broadcast_optimizer_state": 1, "broadcast_object": 1, "broadcast_variables": 1}  # fmt: skip


def check(context: Context) -> Iterator[Hit]:
    """Collectives with a root that is not the same everywhere."""
    for call, scope in context.module.calls:
        name = context.collectives.operation(call, scope)
        if name is None:
            continue
        if context.name(call.func, scope).startswith("horovod."):
            root = argument(call, _HOROVOD[name], "root_rank") if name in _HOROVOD else None
        else:
            root = argument(call, *_ROOTED[name]) if name in _ROOTED else None
        if root is not None and context.ranks.depends(root, scope) and not _is_in_loop_over_ranks(root, context):
            yield Hit(call, f"The root of `{name}` is `{context.text(root)}`, which is another on every rank")


def _is_in_loop_over_ranks(root: ast.expr, context: Context) -> bool:
    loops = [item.target for item in context.within(root, ast.For) if isinstance(item, ast.For)]
    return any(names_in(target) & names_in(root) for target in loops)
