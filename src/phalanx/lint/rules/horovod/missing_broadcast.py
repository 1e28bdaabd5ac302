"""The initial weights are never broadcast.

## What it does
Finds Horovod programs with a DistributedOptimizer or DistributedGradientTape and no broadcast of variables,
parameters or objects.

## Why is this bad?
Processes start from different weights; averaged gradients keep the difference, so losses and weights drift apart.

## Example
```diff
 import torch
 import horovod.torch as hvd

 hvd.init()
 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
 optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
+hvd.broadcast_parameters(model.state_dict(), root_rank=0)
+hvd.broadcast_optimizer_state(optimizer, root_rank=0)
 for step in range(10):
     optimizer.zero_grad()
     model(torch.randn(8, 4)).sum().backward()
     optimizer.step()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LHV004",
    symptom="perf.unexpected-intermediate-result",
    cause="missing-initial-broadcast",
    pattern="fix-distributed-api-usage",
    do="Broadcast from rank 0 before training: `hvd.broadcast_parameters(model.state_dict(), root_rank=0)`, or the callback BroadcastGlobalVariables of Keras.",
    needs=("horovod",),
)


_BROADCASTS = ("broadcast_parameters", "broadcast_variables", "broadcast_global", "BroadcastGlobal", "broadcast_(", "broadcast(", "broadcast_async")  # fmt: skip


def check(context: Context) -> Iterator[Hit]:
    """Wrapped optimizers in a program that trains."""
    wraps = context.calls(
        *(
            f"horovod.{kind}.{name}"
            for kind in ("torch", "tensorflow", "keras")
            for name in ("DistributedOptimizer", "DistributedGradientTape")
        )
    )
    if (
        not wraps
        or context.mentions(*_BROADCASTS, "TorchState", "KerasState", "TensorFlowState", "elastic")
        or context.has_unknown_imports
    ):
        return
    if context.methods_in_program("step", "fit", "apply_gradients", "minimize"):
        yield Hit(wraps[0][0], "Nothing gives the processes the same initial weights")
