"""A Horovod operation has another name on every process.

## What it does
Finds `name` arguments that depend on the rank.

## Why is this bad?
Horovod matches operations by name: one that no other process has waits for ever, and is reported as a stalled tensor.

## Example
```diff
 import torch
 import horovod.torch as hvd

 hvd.init()
 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
 optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
 hvd.broadcast_parameters(model.state_dict(), root_rank=0)
 hvd.broadcast_optimizer_state(optimizer, root_rank=0)
-loss = hvd.allreduce(torch.zeros(1), name=f"loss-{hvd.rank()}")
+loss = hvd.allreduce(torch.zeros(1), name="loss")
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LHV011",
    symptom="perf.hang",
    cause="collective-name-differs",
    pattern="fix-distributed-api-usage",
    do="Give the operation the same name on every process.",
    needs=("horovod",),
)


def check(context: Context) -> Iterator[Hit]:
    """Names of operations over all processes."""
    for call, scope in context.module.calls:
        name = keyword(call, "name")
        if (
            name is None
            or not context.name(call.func, scope).startswith("horovod.")
            or context.collectives.operation(call, scope) is None
        ):
            continue
        parts = [item for item in ast.walk(name) if isinstance(item, ast.expr)]
        if any(context.ranks.depends(part, scope) for part in parts):
            yield Hit(
                call, f"The name `{context.text(name)}` is another on every process: none of them finds the others"
            )
