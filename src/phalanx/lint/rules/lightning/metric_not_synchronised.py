"""A validation metric that only rank 0 computed.

## What it does
Finds `self.log` in validation and test steps without `sync_dist=True`. Not part of the default set.

## Why is this bad?
Each process logs the metric of its own share of the data, and only that of rank 0 is kept: checkpoints and early
stopping follow a part of the validation set.

## Example
```diff
 import lightning as L
 import torch


 class Net(L.LightningModule):
     def __init__(self):
         super().__init__()
         self.layer = torch.nn.Linear(4, 1)

     def validation_step(self, batch, index):
-        self.log("val_loss", self.layer(batch).sum())
+        self.log("val_loss", self.layer(batch).sum(), sync_dist=True)


 trainer = L.Trainer(devices=4, strategy="ddp")
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import has_rest, keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.trainers import module_classes, trains_on_many
from phalanx.lint.tree import Scope
from phalanx.model import Confidence

RULE = Rule(
    code="LLI005",
    symptom="perf.unexpected-intermediate-result",
    cause="metric-of-one-rank",
    pattern="fix-distributed-api-usage",
    do="Pass `sync_dist=True`, or log a torchmetrics object.",
    confidence=Confidence.POSSIBLE,
    needs=("ightning",),
)


def check(context: Context) -> Iterator[Hit]:
    """Logged values in evaluation steps that are no metric objects."""
    owners = module_classes(context) if trains_on_many(context) else []
    for call, scope in context.methods("log") if owners else ():
        function = scope.function
        is_step = (
            function is not None
            and function.owner in owners
            and getattr(function.node, "name", "") in ("validation_step", "test_step")
        )
        if (
            is_step
            and getattr(getattr(call.func, "value", None), "id", "") == "self"
            and keyword(call, "sync_dist") is None
            and not _is_metric(call, context, scope)
            and not has_rest(call)
        ):
            yield Hit(call, "This metric is of one process's share of the data")


def _is_metric(call: ast.Call, context: Context, scope: Scope) -> bool:
    """A torchmetrics object is reduced by Lightning itself; a value that is not seen may be one."""
    value = call.args[1] if len(call.args) > 1 else keyword(call, "value")
    is_field = isinstance(value, ast.Attribute) and getattr(value.value, "id", "") == "self"
    return value is None or is_field or any(v.type.startswith("torchmetrics.") for v in context.values(value, scope))
