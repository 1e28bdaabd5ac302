"""An asynchronous operation whose handle is dropped.

## What it does
Finds `async_op=True`, `isend` and `irecv` calls whose result is thrown away.

## Why is this bad?
Nothing waits for the operation: the tensor is read or changed while it is still being sent or received, and values
are wrong now and then.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 loss = torch.zeros(1)
-dist.all_reduce(loss, async_op=True)
+work = dist.all_reduce(loss, async_op=True)
+work.wait()
 print(loss.item())
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.collectives import COLLECTIVES
from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT011",
    symptom="perf.unexpected-intermediate-result",
    cause="asynchronous-result-not-awaited",
    pattern="fix-distributed-api-usage",
    do="Keep the handle and call `wait()` before the tensor is used.",
    needs=("async_op", "isend", "irecv"),
)


def check(context: Context) -> Iterator[Hit]:
    """Calls that are statements of their own, or whose handle nothing uses."""
    for call, scope in context.module.calls:
        name = context.name(call.func, scope)
        is_async = context.constant(keyword(call, "async_op"), scope) is True and name in COLLECTIVES
        if (is_async or name in ("torch.distributed.isend", "torch.distributed.irecv")) and _is_lost(
            call, context, scope
        ):
            yield Hit(call, f"Nothing waits for `{context.text(call.func)}`")


def _is_lost(call: ast.Call, context: Context, scope: Scope) -> bool:
    """A handle that is not kept, or kept in a variable of the function that is never read."""
    parent = context.module.parents[call][0]
    if isinstance(parent, ast.Assign) and scope.is_function and all(isinstance(t, ast.Name) for t in parent.targets):
        kept = {target.id for target in parent.targets if isinstance(target, ast.Name)}
        if kept == {"_"}:
            return False  # dropped on purpose
        names = (n for n in ast.walk(scope.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        return not any(name.id in kept for name in names)
    return isinstance(parent, ast.Expr)
