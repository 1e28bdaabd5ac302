"""Horovod is initialised, but nothing averages gradients.

## What it does
Finds training loops in Horovod programs without DistributedOptimizer, DistributedGradientTape or an all-reduce.

## Why is this bad?
Every process trains a model of its own.

## Example
```diff
 import torch
 import horovod.torch as hvd

 hvd.init()
 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
+optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
 hvd.broadcast_parameters(model.state_dict(), root_rank=0)
 hvd.broadcast_optimizer_state(optimizer, root_rank=0)
 for step in range(10):
     optimizer.zero_grad()
     model(torch.randn(8, 4)).sum().backward()
     optimizer.step()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LHV003",
    symptom="perf.unexpected-intermediate-result",
    cause="gradients-not-synchronised",
    pattern="fix-distributed-api-usage",
    do="Wrap the optimizer: `hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())`.",
    needs=("horovod",),
)

_SYNC = (
    "DistributedOptimizer",
    "DistributedGradientTape",
    "allreduce",
    "DistributedTrainer",
    "DistributedDataParallel",
    "create_distributed_optimizer",
    "grouped_allreduce",
    "TorchEstimator",
    "KerasEstimator",
)


_OPTIMIZERS = ("torch.optim.", "keras.optimizers.", "tensorflow.optimizers.")


def check(context: Context) -> Iterator[Hit]:
    """Programs with a backward pass, a gradient tape or a fit."""
    init = context.calls("horovod.torch.init", "horovod.tensorflow.init", "horovod.keras.init")
    if not init or context.mentions(*_SYNC) or context.has_unknown_imports:
        return
    trains = context.methods_in_program("backward", "fit", "gradient")
    if trains and context.methods_in_program("step", "fit", "apply_gradients", "assign_sub"):
        made = [c for c, s in context.module.calls if context.name(c.func, s).startswith(_OPTIMIZERS)]
        place = next((call for call in made if ".lr_scheduler." not in ast.unparse(call.func)), init[0][0])
        yield Hit(place, "Horovod is initialised, but gradients are never averaged over the processes")
