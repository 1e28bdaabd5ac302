"""Gradients are clipped while Horovod is still reducing them.

## What it does
Finds gradient clipping between `backward()` and `step()` of a DistributedOptimizer without `optimizer.synchronize()`.

## Why is this bad?
The all-reduce runs in the background until `step()`. Clipping touches gradients that are then overwritten, or that
differ between processes.

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
 for step in range(10):
     optimizer.zero_grad()
     model(torch.randn(8, 4)).sum().backward()
+    optimizer.synchronize()
     torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
+    with optimizer.skip_synchronize():
-    optimizer.step()
+        optimizer.step()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LHV009",
    symptom="perf.unexpected-intermediate-result",
    cause="gradients-changed-before-reduction",
    pattern="fix-optimizer",
    do="Call `optimizer.synchronize()` before clipping, and step within `optimizer.skip_synchronize()`.",
    needs=("clip_grad",),
)


def check(context: Context) -> Iterator[Hit]:
    """Clipping in files that wrap the optimizer and never synchronise."""
    if not context.calls_in_program("horovod.torch.DistributedOptimizer") or context.mentions(
        ".synchronize()", "skip_synchronize"
    ):
        return
    backward = {scope for _, scope in context.methods("backward")}
    for call, scope in context.calls("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_"):
        if context.loops_around(call) or scope in backward:
            yield Hit(call, "Gradients are clipped before Horovod has finished averaging them")
