"""`loss.backward()` in an Accelerate program.

## What it does
Finds backward passes on the loss itself where the model was prepared by Accelerate.

## Why is this bad?
`accelerator.backward` scales the loss for mixed precision and gradient accumulation and calls DeepSpeed's engine;
`loss.backward()` does none of it.

The repair by `--fix` replaces the call.

## Example
```diff
 import torch
 from accelerate import Accelerator

 accelerator = Accelerator()
 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 model, optimizer = accelerator.prepare(model, optimizer)
 for step in range(10):
     optimizer.zero_grad()
     loss = model(torch.randn(8, 4)).sum()
-    loss.backward()
+    accelerator.backward(loss)
     optimizer.step()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import column
from phalanx.lint.rule import Edit, Hit, Rule

RULE = Rule(
    code="LAC001",
    symptom="perf.unexpected-intermediate-result",
    cause="backward-past-the-library",
    pattern="fix-distributed-api-usage",
    do="Call `accelerator.backward(loss)`.",
    needs=("ccelerat",),
)


def check(context: Context) -> Iterator[Hit]:
    """Backward passes in functions that have a prepared model."""
    prepares = context.calls("accelerate.Accelerator.prepare")
    if not prepares or context.calls("accelerate.Accelerator.backward"):
        return
    for call, _ in context.methods("backward"):
        if (
            isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, (ast.Name, ast.BinOp))
            and not call.args
            and "loss" in ast.unparse(call.func.value).lower()
        ):
            edits = _edits(call, prepares[0][0], context)
            yield Hit(call, "`backward()` is called on the loss, past Accelerate", edits=edits)


def _edits(call: ast.Call, prepare: ast.Call, context: Context) -> tuple[Edit, ...]:
    func, owner = call.func, prepare.func
    if (
        not isinstance(func, ast.Attribute)
        or not isinstance(owner, ast.Attribute)
        or not isinstance(owner.value, ast.Name)
        or call.keywords
    ):
        return ()
    if call.lineno != call.end_lineno or context.module.scope_of(call) is not context.module.scope_of(prepare):
        return ()
    start = (call.lineno, column(context, call.lineno, call.col_offset))
    end = (call.lineno, column(context, call.lineno, call.end_col_offset or 0))
    return (Edit(start, end, f"{owner.value.id}.backward({ast.unparse(func.value)})"),)
