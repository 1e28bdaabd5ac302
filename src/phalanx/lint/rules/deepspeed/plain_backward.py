"""`loss.backward()` past the DeepSpeed engine.

## What it does
Finds backward passes on the loss itself, or steps of the optimizer itself, where a DeepSpeed engine runs the model.

## Why is this bad?
The engine scales the loss, accumulates and reduces gradients in `engine.backward` and `engine.step`. Past it
gradients stay on their rank and ZeRO's state is wrong.

## Example
```diff
 import deepspeed
 import torch

 net = torch.nn.Linear(4, 1)
 engine, optimizer, _, _ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config="ds.json")
 for step in range(10):
     loss = engine(torch.randn(8, 4)).sum()
-    loss.backward()
+    engine.backward(loss)
     engine.step()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import ENGINE
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LDS001",
    symptom="perf.unexpected-intermediate-result",
    cause="backward-past-the-library",
    pattern="fix-distributed-api-usage",
    do="Call `engine.backward(loss)` and `engine.step()`.",
    needs=("deepspeed",),
)


def check(context: Context) -> Iterator[Hit]:
    """Scopes that call an engine."""
    if not context.calls_in_program("deepspeed.initialize"):
        return
    called = [scope for call, scope in context.module.calls if context.is_a(call.func, scope, ENGINE)]
    owners = {context.inference.owner_of(scope) for scope in called} - {None}
    engines = {*called, *(f for f in context.module.functions if f.owner in owners)}
    for call, scope in context.methods("backward", "step"):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if scope not in engines or not isinstance(owner, ast.Name):
            continue
        is_loss = getattr(call.func, "attr", "") == "backward" and not call.args and "loss" in owner.id.lower()
        is_optimizer = getattr(call.func, "attr", "") == "step" and context.is_a(owner, scope, "deepspeed.Optimizer")
        if is_loss or is_optimizer:
            yield Hit(call, f"`{context.text(call)}` goes past the DeepSpeed engine")
