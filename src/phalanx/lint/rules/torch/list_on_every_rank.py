"""`gather` gets its list on every rank.

## What it does
Finds `gather_list` and `scatter_list` arguments that are given unconditionally.

## Why is this bad?
The list belongs to the destination (or source) only; the others stop with `gather_list must not be specified
on non-destination ranks`.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 mine = torch.zeros(1)
-parts = [torch.zeros(1) for _ in range(dist.get_world_size())]
+parts = [torch.zeros(1) for _ in range(dist.get_world_size())] if dist.get_rank() == 0 else None
 dist.gather(mine, parts, dst=0)
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
    code="LPT092",
    symptom="fail.communication-error",
    cause="gather-list-on-every-rank",
    pattern="fix-distributed-api-usage",
    do="Pass None on the other ranks: `gather_list=parts if rank == 0 else None`.",
    needs=("gather", "scatter"),
)


def check(context: Context) -> Iterator[Hit]:
    """Lists that are surely there, on every rank."""
    for call, scope in context.calls("torch.distributed.gather", "torch.distributed.scatter"):
        name = "gather_list" if context.name(call.func, scope).endswith(".gather") else "scatter_list"
        given = argument(call, 1, name)
        tests = [parent.test for parent in context.within(call, ast.If) if isinstance(parent, ast.If)]
        is_chosen = any("rank" in ast.unparse(test) for test in tests)  # also the rank within a smaller group
        if (
            given is not None
            and not is_chosen
            and context.guard(call, scope) is None
            and _is_list(given, context, scope)
        ):
            yield Hit(call, f"`{name}` is given on every rank, but only one may have it")


def _is_list(node: ast.expr, context: Context, scope: Scope) -> bool:
    made, where = context.origin(node, scope)
    is_list = isinstance(made, (ast.List, ast.ListComp)) and bool(getattr(made, "elts", True))
    return is_list and context.ranks.guard(made, where, callers=False) is None
