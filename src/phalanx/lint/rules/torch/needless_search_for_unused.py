"""DDP looks for unused parameters in a model that has none.

## What it does
Finds `find_unused_parameters=True` for deep models (a stack of layers) whose forward pass has no branches and uses
every layer.

## Why is this bad?
DDP then walks the whole autograd graph in every step, for nothing.

The repair by `--fix` removes the argument.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel


 class Net(torch.nn.Module):
     def __init__(self):
         super().__init__()
         self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(24))

     def forward(self, x):
         for layer in self.layers:
             x = layer(x)
         return x


 dist.init_process_group("gloo")
-model = DistributedDataParallel(Net(), find_unused_parameters=True)
+model = DistributedDataParallel(Net())
 dist.destroy_process_group()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP
from phalanx.lint.layers import owner_of, uses_everything
from phalanx.lint.patterns import drop_keyword, keyword
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT037",
    symptom="perf.low-efficiency",
    cause="needless-search-for-unused-parameters",
    pattern="fix-distributed-api-usage",
    do="Leave `find_unused_parameters` out.",
    needs=("find_unused_parameters",),
)


def check(context: Context) -> Iterator[Hit]:
    """Only where the whole forward pass is seen."""
    for call, scope in context.calls(DDP):
        if context.constant(keyword(call, "find_unused_parameters"), scope) is not True or not call.args:
            continue
        values = context.values(call.args[0], scope)
        owners = [owner_of(value, context) for value in values]
        if owners and all(owner is not None and uses_everything(owner, context) for owner in owners):
            edit = drop_keyword(context, call, "find_unused_parameters")
            yield Hit(
                call,
                "Every parameter of this model is used, so the search for unused ones only costs time",
                edits=(edit,) if edit else (),
            )
