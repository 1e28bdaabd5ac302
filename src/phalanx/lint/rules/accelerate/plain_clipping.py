"""Gradients are clipped past Accelerate.

## What it does
Finds `torch.nn.utils.clip_grad_norm_` in programs that call `accelerator.backward`.

## Why is this bad?
Under mixed precision the gradients are still scaled, under FSDP and DeepSpeed they are sharded: the plain function
clips by a wrong norm.

## Example
```diff
 import torch
 from accelerate import Accelerator

 accelerator = Accelerator()
 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 model, optimizer = accelerator.prepare(model, optimizer)
 accelerator.backward(model(torch.randn(8, 4)).sum())
-torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
+accelerator.clip_grad_norm_(model.parameters(), 1.0)
 optimizer.step()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LAC005",
    symptom="perf.unexpected-intermediate-result",
    cause="gradients-clipped-past-the-library",
    pattern="fix-distributed-api-usage",
    do="Call `accelerator.clip_grad_norm_`.",
    needs=("clip_grad",),
)


def check(context: Context) -> Iterator[Hit]:
    """The plain function beside Accelerate's backward."""
    if not context.calls("accelerate.Accelerator.backward"):
        return
    for call, _ in context.calls("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_"):
        yield Hit(
            call, "Gradients are clipped by PyTorch's own function, which does not know about scaling and sharding"
        )
