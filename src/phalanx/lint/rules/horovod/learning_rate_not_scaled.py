"""The learning rate does not know the number of processes.

## What it does
Finds a literal learning rate in Horovod programs that never use `hvd.size()` for it. Not part of the default set.

## Why is this bad?
The effective batch grows with the number of processes; without a larger learning rate (and a warm-up) training needs
as many steps as before.

## Example
```diff
 import torch
 import horovod.torch as hvd

 hvd.init()
 model = torch.nn.Linear(4, 1)
-optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
+optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
 optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
 hvd.broadcast_parameters(model.state_dict(), root_rank=0)
 hvd.broadcast_optimizer_state(optimizer, root_rank=0)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.model import Confidence

RULE = Rule(
    code="LHV005",
    symptom="perf.non-convergence",
    cause="learning-rate-not-scaled",
    pattern="fix-learning-rate",
    do="Multiply the learning rate by `hvd.size()` and warm it up.",
    confidence=Confidence.POSSIBLE,
    default=False,
    needs=("horovod",),
)


def check(context: Context) -> Iterator[Hit]:
    """Literal rates of wrapped optimizers."""
    wraps = context.calls(*(f"horovod.{kind}.DistributedOptimizer" for kind in ("torch", "tensorflow", "keras")))
    sizes = context.calls_in_program(*(f"horovod.{kind}.size" for kind in ("torch", "tensorflow", "keras")))
    for call, scope in wraps if not sizes else ():
        for value in context.values(call.args[0], scope) if call.args else ():
            rate = (
                next((k.value for k in value.node.keywords if k.arg in ("lr", "learning_rate")), None)
                if isinstance(value.node, ast.Call)
                else None
            )
            if rate is not None and isinstance(context.constant(rate, value.scope), float):
                yield Hit(
                    value.node,
                    "The learning rate is the same for any number of processes",
                    confidence=Confidence.POSSIBLE,
                )
