"""Tensors are moved to `cuda` by hand in an Accelerate program.

## What it does
Finds `.cuda()` and `.to("cuda")` in files that make an Accelerator.

## Why is this bad?
`cuda` is GPU 0 for every process unless its device was set; Accelerate has already chosen one for each.

## Example
```diff
 import torch
 from accelerate import Accelerator

 accelerator = Accelerator()
 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 model, optimizer = accelerator.prepare(model, optimizer)
-x = torch.randn(8, 4).cuda()
+x = torch.randn(8, 4).to(accelerator.device)
 accelerator.backward(model(x).sum())
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import device_text
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LAC003",
    symptom="prep.device-error",
    cause="all-ranks-on-one-gpu",
    pattern="fix-device-assignment",
    do="Use `accelerator.device`, or let a prepared loader place the batch.",
    needs=("ccelerat",),
)


def check(context: Context) -> Iterator[Hit]:
    """Moves to a literal device."""
    if not context.calls("accelerate.Accelerator"):
        return
    for call, scope in context.methods("cuda", "to"):
        first = call.args[0] if call.args else None
        is_bare = (
            getattr(call.func, "attr", "") == "cuda"
            and first is None
            and not call.keywords
            and not context.name(call.func, scope).startswith("torch")
        )
        value = (
            context.constant(first, scope) if isinstance(first, ast.Constant) else device_text(first, context, scope)
        )
        if (is_bare or value in ("cuda", "cuda:0", 0)) and not (
            value == 0 and getattr(call.func, "attr", "") != "cuda"
        ):
            yield Hit(call, f"`{context.text(call)}` puts it on GPU 0 in every process")
