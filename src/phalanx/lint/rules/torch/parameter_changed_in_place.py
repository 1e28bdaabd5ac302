"""Weights are changed in place while gradients are recorded.

## What it does
Finds in-place methods (`clamp_`, `add_`, `copy_`, …) on parameters outside of `torch.no_grad()`.

## Why is this bad?
A parameter is a leaf that requires gradients: `a leaf Variable that requires grad is being used in an in-place
operation`.

## Example
```diff
 import torch

 model = torch.nn.Linear(4, 1)
+with torch.no_grad():
-for weight in model.parameters():
+    for weight in model.parameters():
-    weight.clamp_(-0.1, 0.1)
+        weight.clamp_(-0.1, 0.1)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import calls_below, is_without_gradients, root_name
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT082",
    symptom="fail.graph-execution-error",
    cause="leaf-changed-in-place",
    pattern="fix-tensor-api-usage",
    do="Do it under `torch.no_grad()`.",
    needs=("parameters",),
    is_distributed=False,
)

_HARMLESS = frozenset({"requires_grad_", "share_memory_", "detach_", "retain_grad", "register_hook"})


def check(context: Context) -> Iterator[Hit]:
    """In-place methods on the variable of a loop over parameters."""
    for loop, _ in context.module.loops:
        if isinstance(loop, ast.While) or not isinstance(loop.target, ast.Name):
            continue
        iterated = loop.iter
        if not (
            isinstance(iterated, ast.Call)
            and isinstance(iterated.func, ast.Attribute)
            and iterated.func.attr == "parameters"
        ):
            continue
        for call in calls_below(loop.body):
            func = call.func
            if (
                not isinstance(func, ast.Attribute)
                or not func.attr.endswith("_")
                or func.attr.endswith("__")
                or func.attr in _HARMLESS
            ):
                continue
            if (
                root_name(func.value) == loop.target.id
                and isinstance(func.value, ast.Name)
                and not is_without_gradients(context, call)
            ):
                yield Hit(call, f"`{context.text(call)}` changes a parameter in place while gradients are recorded")
