"""Tensors are moved to `cuda` by hand in a LightningModule.

## What it does
Finds `.cuda()`, `.to("cuda")` and `device="cuda"` in methods of Lightning modules.

## Why is this bad?
Lightning gives each process its own device and moves the module there. `cuda:0` is GPU 0 in every process, so with
several GPUs tensors meet on different devices; `cuda` fails wherever the Trainer chooses a CPU or another accelerator.

## Example
```diff
 import lightning as L
 import torch


 class Net(L.LightningModule):
     def __init__(self):
         super().__init__()
         self.layer = torch.nn.Linear(4, 1)

     def training_step(self, batch, index):
-        noise = torch.randn(8, 1).cuda()
+        noise = torch.randn(8, 1, device=self.device)
         return (self.layer(batch) + noise).sum()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.trainers import module_classes

RULE = Rule(
    code="LLI001",
    symptom="prep.device-error",
    cause="all-ranks-on-one-gpu",
    pattern="fix-device-assignment",
    do="Use `self.device`, or register the tensor as a buffer.",
    needs=("ightning",),
)


def check(context: Context) -> Iterator[Hit]:
    """Moves in methods of module classes."""
    owners = module_classes(context)
    for call, scope in context.module.calls if owners else ():
        function = scope.function
        if function is None or function.owner not in owners:
            continue
        attribute = getattr(call.func, "attr", "")
        first = call.args[0] if call.args else None
        is_bare = (
            attribute == "cuda"
            and first is None
            and not call.keywords
            and not context.name(call.func, scope).startswith("torch")
        )
        literal = first.value if isinstance(first, ast.Constant) and attribute == "to" else None
        device = keyword(call, "device")
        literal = device.value if isinstance(device, ast.Constant) else literal
        if is_bare or literal in ("cuda", "cuda:0"):
            where = "GPU 0 in every process" if literal == "cuda:0" else "a GPU, whatever device the Trainer chose"
            yield Hit(call, f"`{context.text(call)}` is {where}")
