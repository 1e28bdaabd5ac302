"""An operation that the backend does not have.

## What it does
Finds `ReduceOp.AVG` in programs whose only backend is Gloo, and `monitored_barrier` in those whose only one is NCCL.

## Why is this bad?
The call raises an error: Gloo cannot average, and only Gloo has a monitored barrier.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 loss = torch.zeros(1)
-dist.all_reduce(loss, op=dist.ReduceOp.AVG)
+dist.all_reduce(loss)
+loss /= dist.get_world_size()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT091",
    symptom="fail.not-implemented",
    cause="operation-not-of-backend",
    pattern="fix-distributed-api-usage",
    do="Use SUM and divide by the world size; for NCCL use `barrier`.",
    needs=("AVG", "monitored_barrier"),
)


def check(context: Context) -> Iterator[Hit]:
    """Calls over the default group."""
    if context.backends == {"gloo"}:
        for call, scope in context.calls(
            "torch.distributed.all_reduce", "torch.distributed.reduce", "torch.distributed.reduce_scatter"
        ):
            if any(
                context.name(item, scope).endswith("ReduceOp.AVG")
                for item in (*call.args, *(k.value for k in call.keywords))
            ):
                yield Hit(call, "Gloo does not have `ReduceOp.AVG`")
    elif context.backends == {"nccl"}:
        for call, scope in context.calls("torch.distributed.monitored_barrier"):
            if context.collectives.operation(call, scope) is not None:
                yield Hit(call, "NCCL does not have a monitored barrier")
