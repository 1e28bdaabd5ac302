"""`loss.backward()` in a LightningModule.

## What it does
Finds backward passes on the loss itself in methods of Lightning modules.

## Why is this bad?
With automatic optimization Lightning runs the backward pass itself, so gradients come twice; with manual optimization
`self.manual_backward` is needed for mixed precision and strategies.

## Example
```diff
 import lightning as L
 import torch


 class Net(L.LightningModule):
     def __init__(self):
         super().__init__()
         self.layer = torch.nn.Linear(4, 1)

     def training_step(self, batch, index):
         loss = self.layer(batch).sum()
-        loss.backward()
         return loss
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.trainers import module_classes

RULE = Rule(
    code="LLI004",
    symptom="perf.unexpected-intermediate-result",
    cause="backward-past-the-library",
    pattern="fix-distributed-api-usage",
    do="Return the loss, or call `self.manual_backward(loss)` with `automatic_optimization = False`.",
    needs=("ightning",),
)


def check(context: Context) -> Iterator[Hit]:
    """Backward passes in `training_step`."""
    owners = module_classes(context)
    for call, scope in context.methods("backward") if owners else ():
        function = scope.function
        is_step = (
            function is not None and function.owner in owners and getattr(function.node, "name", "") == "training_step"
        )
        if (
            is_step
            and isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id not in ("self", "super")
        ):
            yield Hit(call, "`backward()` is called on the loss, past Lightning")
