"""An optimizer or loader that Accelerate never prepares.

## What it does
Finds optimizers and loaders that train beside objects that were prepared.

## Why is this bad?
What is not prepared is neither wrapped nor moved: an unprepared optimizer ignores gradient scaling and accumulation,
an unprepared loader gives every process all of the data.

## Example
```diff
 import torch
 from accelerate import Accelerator

 accelerator = Accelerator()
 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
-model = accelerator.prepare(model)
+model, optimizer = accelerator.prepare(model, optimizer)
 for step in range(10):
     optimizer.zero_grad()
     accelerator.backward(model(torch.randn(8, 4)).sum())
     optimizer.step()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.loaders import is_sharded, loaders_of
from phalanx.lint.patterns import has_rest, root_name
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LAC002",
    symptom="perf.unexpected-parallelization-or-device",
    cause="object-not-prepared",
    pattern="fix-distributed-api-usage",
    do="Hand it to `accelerator.prepare(…)` with the others.",
    needs=("ccelerat",),
)


def check(context: Context) -> Iterator[Hit]:
    """Optimizers that step in the function that prepares, and are in no `prepare`."""
    calls = context.calls("accelerate.Accelerator.prepare", "accelerate.Accelerator.prepare_optimizer")
    if not calls or any(has_rest(call) for call, _ in calls):
        return
    handed = {root_name(item) for call, _ in calls for item in call.args}
    owners = {context.inference.owner_of(scope) for _, scope in calls} - {None}
    scopes = {*(scope for _, scope in calls), *(f for f in context.module.functions if f.owner in owners)}
    for loop, scope in context.training_loops:
        if isinstance(loop, ast.While) or scope not in scopes:
            continue
        for value in loaders_of(loop.iter, context, scope):
            if isinstance(value.node, ast.Call) and not is_sharded(value.node, value.scope, context):
                yield Hit(
                    loop.iter,
                    f"`{context.text(loop.iter)}` was never handed to `accelerator.prepare`: every process reads all of the data",
                )
    for call, scope in context.methods("step"):
        name = (
            call.func.value.id if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) else ""
        )
        if scope not in scopes or not name or name in handed:
            continue
        values = context.values(getattr(call.func, "value", None), scope)
        if values and all(
            v.type.startswith("torch.optim.") and ".lr_scheduler." not in v.type and "prepared" not in v.tags
            for v in values
        ):
            yield Hit(call, f"`{name}` was never handed to `accelerator.prepare`")
            return
