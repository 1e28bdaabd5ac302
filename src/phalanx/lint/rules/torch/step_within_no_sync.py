"""The optimizer steps within `no_sync()`.

## What it does
Finds `optimizer.step()` in a `with model.no_sync():` block.

## Why is this bad?
Within `no_sync` gradients are not averaged. The step uses this rank's own gradients, and the replicas drift apart.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 model = DistributedDataParallel(torch.nn.Linear(4, 1))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 with model.no_sync():
     model(torch.randn(8, 4)).sum().backward()
+model(torch.randn(8, 4)).sum().backward()
-    optimizer.step()
+optimizer.step()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.flow import calls_reached
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT038",
    symptom="perf.unexpected-intermediate-result",
    cause="gradients-not-synchronised",
    pattern="fix-distributed-api-usage",
    do="Run the last backward pass before the step outside of `no_sync()`.",
    needs=("no_sync",),
)


def check(context: Context) -> Iterator[Hit]:
    """Steps of optimizers under the context manager itself, not under a choice of context managers."""
    for call, scope in context.methods("step"):
        is_optimizer = isinstance(call.func, ast.Attribute) and (
            "optim" in ast.unparse(call.func.value).lower()
            or any(v.type.startswith("torch.optim.") for v in context.values(call.func.value, scope))
        )
        for parent in context.within(call, ast.With):
            if is_optimizer and isinstance(parent, ast.With) and _is_no_sync(parent, context):
                yield Hit(call, "The optimizer steps within `no_sync()`: these gradients were never averaged")
                return
    yield from _never_synchronised(context)


def _never_synchronised(context: Context) -> Iterator[Hit]:
    """Loops in which every backward pass is under `with model.no_sync():`, and an optimizer steps."""
    for loop, scope in context.module.loops:
        inside = list(calls_reached(loop.body, scope, context, names=frozenset({"backward", "step"})))
        passes = [call for call, inner, _ in inside if getattr(inner.func, "attr", "") == "backward"]
        blocks = [_no_sync_around(call, loop, context) for call in passes]
        if not passes or None in blocks or len(passes) == len(inside):
            continue
        if not any(isinstance(parent, (ast.If, ast.IfExp)) for b in blocks if b for parent in _above(b, loop, context)):
            yield Hit(passes[0], "Every backward pass is within `no_sync()`: gradients are never averaged")


def _no_sync_around(call: ast.Call, loop: ast.AST, context: Context) -> ast.With | None:
    for parent in _above(call, loop, context):
        if isinstance(parent, ast.With) and _is_no_sync(parent, context):
            return parent
    return None


def _above(node: ast.AST, loop: ast.AST, context: Context) -> Iterator[ast.AST]:
    """Ancestors up to a loop."""
    for parent, _ in context.module.ancestors(node):
        if parent is loop:
            return
        yield parent


def _is_no_sync(block: ast.With, context: Context) -> bool:
    """Whether a block is entered through `no_sync()` and nothing else, in a variable too."""
    scope = context.module.scope_of(block)
    return any(
        all(
            getattr(getattr(made, "func", None), "attr", "") == "no_sync"
            for made, _ in context.origins(item.context_expr, scope)
        )
        for item in block.items
    )
