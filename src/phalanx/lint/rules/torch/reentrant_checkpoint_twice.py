"""A layer is checkpointed twice in one forward pass of a DDP model.

## What it does
Finds reentrant activation checkpointing of the same layer more than once in a function.

## Why is this bad?
Each reentrant backward pass marks the layer's parameters as ready, the second time too early: `Expected to mark a
variable ready only once`.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel
 from torch.utils.checkpoint import checkpoint


 class Net(torch.nn.Module):
     def __init__(self):
         super().__init__()
         self.mix = torch.nn.Linear(4, 4)

     def forward(self, x):
-        return checkpoint(self.mix, checkpoint(self.mix, x, use_reentrant=True), use_reentrant=True)
+        return checkpoint(self.mix, checkpoint(self.mix, x, use_reentrant=False), use_reentrant=False)


 dist.init_process_group("gloo")
 model = DistributedDataParallel(Net())
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT040",
    symptom="fail.communication-error",
    cause="parameter-marked-ready-twice",
    pattern="fix-distributed-api-usage",
    do="Pass `use_reentrant=False`.",
    needs=("checkpoint",),
)


def check(context: Context) -> Iterator[Hit]:
    """Two checkpoints of one layer."""
    if not context.calls_in_program(DDP):
        return
    seen: dict[tuple[str, int], ast.Call] = {}
    for call, scope in context.calls("torch.utils.checkpoint.checkpoint"):
        if not call.args or context.constant(keyword(call, "use_reentrant"), scope) is False:
            continue
        key = (ast.unparse(call.args[0]), id(scope))
        first = seen.setdefault(key, call)
        if first is not call:
            yield Hit(call, f"`{key[0]}` is checkpointed twice in one pass, reentrantly, in a model wrapped by DDP")
