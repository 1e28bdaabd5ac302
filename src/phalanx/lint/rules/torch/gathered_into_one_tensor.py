"""`all_gather` into a list that holds the same tensor n times.

## What it does
Finds output lists made by `[tensor] * n`.

## Why is this bad?
All entries are one tensor, so every rank's data overwrite each other and the list holds n copies of one of them.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 mine = torch.zeros(1)
-parts = [torch.zeros(1)] * dist.get_world_size()
+parts = [torch.zeros(1) for _ in range(dist.get_world_size())]
 dist.all_gather(parts, mine)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT010",
    symptom="perf.unexpected-intermediate-result",
    cause="gather-list-aliased",
    pattern="fix-tensor-api-usage",
    do="Make one tensor for each rank: `[torch.empty_like(x) for _ in range(world_size)]`.",
    needs=("gather",),
)


def check(context: Context) -> Iterator[Hit]:
    """The output list of `all_gather` and `gather`."""
    for call, scope in context.calls("torch.distributed.all_gather", "torch.distributed.gather"):
        place = 0 if context.name(call.func, scope).endswith("all_gather") else 1
        given = argument(call, place, "tensor_list" if place == 0 else "gather_list")
        if given is not None and _is_repeated(given, context, scope):
            yield Hit(call, f"All entries of `{context.text(given)}` are the same tensor")


def _is_repeated(node: ast.expr, context: Context, scope: Scope) -> bool:
    return all(_repeats(made) for made, _ in context.origins(node, scope))


def _repeats(node: ast.expr) -> bool:
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return False
    items = next((side.elts for side in (node.left, node.right) if isinstance(side, ast.List)), [])
    return len(items) == 1 and not isinstance(items[0], ast.Constant)
