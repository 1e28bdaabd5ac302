"""Gradients are never set to zero.

## What it does
Finds training loops with `backward()` and `step()` in programs without any `zero_grad`.

## Why is this bad?
Each backward pass adds to the gradients of all steps before: steps become larger and larger, and training diverges.

## Example
```diff
 import torch

 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for step in range(100):
+    optimizer.zero_grad()
     model(torch.randn(8, 4)).square().mean().backward()
     optimizer.step()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import repeats
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT086",
    symptom="perf.non-convergence",
    cause="gradients-never-cleared",
    pattern="fix-optimizer",
    do="Call `optimizer.zero_grad()` once a step.",
    needs=("backward",),
    is_distributed=False,
)


def check(context: Context) -> Iterator[Hit]:
    """Both in one loop, with an optimizer of PyTorch."""
    if (
        context.is_managed
        or context.mentions("zero_grad", ".grad = None", ".grad=None", "grad.zero_", "set_to_none", "grad.detach")
        or context.has_unknown_imports
    ):
        return
    for call, scope in context.methods("step"):
        stepped = call.args[0] if len(call.args) == 1 else getattr(call.func, "value", None)  # `scaler.step(optimizer)`
        values = context.values(stepped, scope)
        is_optimizer = bool(values) and all(
            v.type.startswith("torch.optim.") and "lr_scheduler" not in v.type and "LBFGS" not in v.type for v in values
        )
        if is_optimizer and repeats(call, scope, context, context.trains):
            yield Hit(call, "The optimizer steps, but gradients are never set to zero")
            return
