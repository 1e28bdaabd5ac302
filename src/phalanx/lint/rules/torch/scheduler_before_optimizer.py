"""The learning rate is stepped before the optimizer.

## What it does
Finds `scheduler.step()` before `optimizer.step()` in the same block of a training loop.

## Why is this bad?
The first value of the schedule is skipped, and PyTorch warns about it once.

## Example
```diff
 import torch

 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
 for step in range(100):
     optimizer.zero_grad()
     model(torch.randn(8, 4)).sum().backward()
+    optimizer.step()
     scheduler.step()
-    optimizer.step()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import following
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT080",
    symptom="perf.unexpected-intermediate-result",
    cause="scheduler-before-optimizer",
    pattern="fix-optimizer",
    do="Call `optimizer.step()` first.",
    needs=("scheduler",),
    is_distributed=False,
)


def check(context: Context) -> Iterator[Hit]:
    """Two statements of one block."""
    for call, scope in context.methods("step"):
        if not isinstance(call.func, ast.Attribute) or not _is(
            call.func.value, "torch.optim.lr_scheduler.", context, scope
        ):
            continue
        for statement in following(context, call):
            later = statement.value if isinstance(statement, ast.Expr) else None
            if (
                isinstance(later, ast.Call)
                and isinstance(later.func, ast.Attribute)
                and later.func.attr == "step"
                and _is_optimizer(later.func.value, context, scope)
            ):
                yield Hit(call, f"The scheduler steps before the optimizer (line {later.lineno})")
                break


def _is(node: ast.expr, prefix: str, context: Context, scope: Scope) -> bool:
    return any(value.type.startswith(prefix) for value in context.values(node, scope))


def _is_optimizer(node: ast.expr, context: Context, scope: Scope) -> bool:
    return _is(node, "torch.optim.", context, scope) and not _is(node, "torch.optim.lr_scheduler.", context, scope)
