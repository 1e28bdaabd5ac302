"""Gradient accumulation is declared, but never entered.

## What it does
Finds `Accelerator(gradient_accumulation_steps=n)` without `with accelerator.accumulate(model):`.

## Why is this bad?
Without the context the optimizer steps after every batch: the effective batch is n times smaller than configured,
while the loss is divided by n.

## Example
```diff
 import torch
 from accelerate import Accelerator

 accelerator = Accelerator(gradient_accumulation_steps=4)
 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 model, optimizer = accelerator.prepare(model, optimizer)
 for step in range(8):
+    with accelerator.accumulate(model):
-    accelerator.backward(model(torch.randn(8, 4)).sum())
+        accelerator.backward(model(torch.randn(8, 4)).sum())
-    optimizer.step()
+        optimizer.step()
-    optimizer.zero_grad()
+        optimizer.zero_grad()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LAC006",
    symptom="perf.unexpected-intermediate-result",
    cause="accumulation-not-declared",
    pattern="fix-distributed-api-usage",
    do="Run each step within `with accelerator.accumulate(model):`.",
    needs=("gradient_accumulation_steps",),
)


def check(context: Context) -> Iterator[Hit]:
    """The argument without the context, in a file with the loop."""
    if not context.calls("accelerate.Accelerator.backward") or context.mentions(
        "accumulate(", "no_sync", "sync_gradients", "GradientState"
    ):
        return
    for call, scope in context.calls("accelerate.Accelerator"):
        given = keyword(call, "gradient_accumulation_steps")
        if given is not None and context.constant(given, scope) != 1 and not _counts(context):
            yield Hit(call, "`gradient_accumulation_steps` is set, but no step runs within `accelerator.accumulate`")


def _counts(context: Context) -> bool:
    """The loop counts by itself."""
    return any(
        "%" in ast.unparse(branch.test) and "step" in ast.unparse(branch) for branch, _ in context.module.branches
    )
