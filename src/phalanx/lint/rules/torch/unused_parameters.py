"""A layer that no forward pass uses, in a model wrapped by DDP.

## What it does
Finds layers that `__init__` makes and that no other code mentions, in classes that are wrapped without
`find_unused_parameters=True`.

## Why is this bad?
DDP waits for the gradient of every parameter. Of an unused layer it never comes: `Expected to have finished reduction
in the prior iteration`.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel


 class Net(torch.nn.Module):
     def __init__(self):
         super().__init__()
         self.body = torch.nn.Linear(4, 1)
-        self.auxiliary = torch.nn.Linear(4, 2)

     def forward(self, x):
         return self.body(x)


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
from phalanx.lint.layers import owner_of, sometimes_unused, unused_layers
from phalanx.lint.patterns import has_rest
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT036",
    symptom="fail.communication-error",
    cause="unused-parameters",
    pattern="fix-model-construction",
    do="Remove the layer, use it in the loss, or pass `find_unused_parameters=True`.",
)


def check(context: Context) -> Iterator[Hit]:
    """The class behind each wrapped model."""
    for call, scope in context.calls(DDP):
        if has_rest(call) or any(item.arg in ("find_unused_parameters", "static_graph") for item in call.keywords):
            continue
        for value in context.values(call.args[0], scope) if call.args else ():
            owner = owner_of(value, context)
            if owner is not None:
                yield from _unused(call, owner, context)


def _unused(call: ast.Call, owner: Scope, context: Context) -> Iterator[Hit]:
    for name in unused_layers(owner, context):
        line = getattr(owner.module.self_fields[owner.node][name][0][0].node, "lineno", 1)
        text = f"`self.{name}` of the wrapped model is never used; DDP waits for its gradient"
        yield Hit(call, text, also=((owner.module.file, line, f"self.{name} = …"),))
        return
    found = sometimes_unused(owner, context)
    if found is not None:
        name, test = found
        text = f"`self.{name}` of the wrapped model is used only where `{context.text(test)}`; else DDP waits for its gradient"
        yield Hit(call, text, also=((owner.module.file, test.lineno, owner.module.line(test.lineno)),))
