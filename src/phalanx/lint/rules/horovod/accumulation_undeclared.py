"""Gradients are accumulated, but Horovod is not told.

## What it does
Finds several backward passes for one `optimizer.step()` with a DistributedOptimizer without
`backward_passes_per_step`.

## Why is this bad?
Horovod starts the all-reduce in every backward pass and raises `Gradients were computed more than
backward_passes_per_step times before call to step()`.

## Example
```diff
 import torch
 import horovod.torch as hvd

 hvd.init()
 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
-optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
+optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), backward_passes_per_step=4)
 hvd.broadcast_parameters(model.state_dict(), root_rank=0)
 hvd.broadcast_optimizer_state(optimizer, root_rank=0)
 for step in range(10):
     model(torch.randn(8, 4)).sum().backward()
     if (step + 1) % 4 == 0:
         optimizer.step()
         optimizer.zero_grad()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import has_rest, keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LHV007",
    symptom="fail.other",
    cause="accumulation-not-declared",
    pattern="fix-optimizer",
    do="Pass `backward_passes_per_step=n` to DistributedOptimizer.",
    needs=("horovod",),
)


def check(context: Context) -> Iterator[Hit]:
    """Backward in a loop, the step under a condition or outside of an inner loop."""
    wraps = context.calls("horovod.torch.DistributedOptimizer")
    if not wraps or any(keyword(call, "backward_passes_per_step") is not None or has_rest(call) for call, _ in wraps):
        return
    for call, scope in context.methods("backward"):
        loops = context.loops_around(call)
        steps = [
            c
            for c, s in context.methods("step")
            if s is scope and loops and loops[0] in context.loops_around(c) and _is_optimizer(c, context, s)
        ]
        inner = [
            c
            for c, s in context.methods("step")
            if s is scope
            and len(loops) > 1
            and loops[0] not in context.loops_around(c)
            and loops[1] in context.loops_around(c)
            and _is_optimizer(c, context, s)
        ]
        conditional = [
            c
            for c in steps
            if any("%" in ast.unparse(p.test) for p in context.within(c, ast.If) if isinstance(p, ast.If))
        ]
        if (steps and len(conditional) == len(steps)) or (not steps and inner):
            yield Hit(
                wraps[0][0],
                f"Several backward passes (line {call.lineno}) come before one step, but `backward_passes_per_step` is 1",
            )
            return


def _is_optimizer(call: ast.Call, context: Context, scope: Scope) -> bool:
    return "optim" in ast.unparse(call.func).lower() or any(
        v.type.endswith("DistributedOptimizer") for v in context.values(getattr(call.func, "value", None), scope)
    )
