"""A method of the inner model is called on its wrapper.

## What it does
Finds attributes on a DistributedDataParallel or DataParallel model that only the wrapped class has, and `fit`,
`compile` and `save` of wrapped Keras models.

## Why is this bad?
The wrapper has only what every module has; the rest is behind `.module`, so the call raises AttributeError.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel


 class Net(torch.nn.Module):
     def __init__(self):
         super().__init__()
         self.layer = torch.nn.Linear(4, 1)

     def forward(self, x):
         return self.layer(x)

     def describe(self):
         return "a net"


 dist.init_process_group("gloo")
 model = DistributedDataParallel(Net())
-print(model.describe())
+print(model.module.describe())
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP
from phalanx.lint.resolve import Value
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT032",
    symptom="fail.attribute-not-found",
    cause="method-called-on-wrapper",
    pattern="fix-distributed-api-usage",
    do="Go through `.module` for what belongs to the inner model; for training call the wrapper itself.",
    needs=("Parallel",),
)

_KERAS = frozenset({"fit", "evaluate", "predict", "save_weights", "load_weights", "summary", "save"})
_EVERY = frozenset({"forward", "train", "eval", "training", "__init__", "state_dict", "load_state_dict", "parameters", "named_parameters", "modules", "children", "to", "cuda", "cpu", "module", "device", "apply", "half", "float", "register_buffer"})  # fmt: skip


def check(context: Context) -> Iterator[Hit]:
    """Attributes that are read from wrappers."""
    if not context.calls_in_program(DDP, "torch.nn.parallel.DataParallel"):
        return
    for node, scope in context.module.nodes[ast.Attribute]:
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load) or node.attr in _EVERY:
            continue
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "torch", "dist", "nn", "os"):
            continue
        values = context.values(node.value, scope)
        if values and all(
            v.type in (DDP, "torch.nn.parallel.DataParallel") and _belongs_inside(node.attr, v, context) for v in values
        ):
            wrapper = values[0].type.rpartition(".")[2]
            yield Hit(node, f"`{node.attr}` belongs to the inner model; {wrapper} does not have it")


def _belongs_inside(name: str, wrapper: Value, context: Context) -> bool:
    inner = context.inference.inner(wrapper)
    return bool(inner) and all(_has(value, name, context) for value in inner)


def _has(value: Value, name: str, context: Context) -> bool:
    if value.type.startswith("keras."):
        return name in _KERAS
    call = value.node
    owner = context.inference.symbol(call.func, value.scope) if isinstance(call, ast.Call) else None
    if owner is None or not isinstance(owner.node, ast.ClassDef):
        return False
    return name in owner.module.self_fields.get(owner.node, {}) or context.inference.member(owner, name) is not None
