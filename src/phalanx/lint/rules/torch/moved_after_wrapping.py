"""The model is moved to its device after it was wrapped.

## What it does
Finds `.to(…)` or `.cuda()` on a DistributedDataParallel or FSDP model.

## Why is this bad?
DDP builds its buckets, and chooses the communication, for the device of the parameters that it is given. Moved later,
gradients are reduced on the wrong device or not at all.

## Example
```diff
 import os

 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 local_rank = int(os.environ["LOCAL_RANK"])
 torch.cuda.set_device(local_rank)
 dist.init_process_group("nccl")
+model = torch.nn.Linear(4, 1).to(local_rank)
-model = DistributedDataParallel(torch.nn.Linear(4, 1), device_ids=[local_rank])
+model = DistributedDataParallel(model, device_ids=[local_rank])
-model.to(local_rank)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP, FSDP
from phalanx.lint.patterns import keyword
from phalanx.lint.resolve import Value
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT025",
    symptom="prep.device-error",
    cause="model-moved-after-wrapping",
    pattern="fix-device-assignment",
    do="Move the model to the device first, then wrap it.",
)


def check(context: Context) -> Iterator[Hit]:
    """Moves of wrapped models; wrapping in the same expression counts too."""
    for call, scope in context.methods("to", "cuda"):
        if not isinstance(call.func, ast.Attribute):
            continue
        for value in context.values(call.func.value, scope):
            is_wrapper = value.type in (DDP, FSDP) and _is_before(value, call.func.value, scope)
            if is_wrapper and not _is_dtype(call, context, scope):
                kind = value.type.rpartition(".")[2]
                yield Hit(call, f"The model is moved after it was wrapped in {kind}")
                break


def _is_before(value: Value, moved: ast.expr, scope: Scope) -> bool:
    """A field is wrapped before it is moved where the constructor does it, or the same method; else nobody knows."""
    if not isinstance(moved, ast.Attribute):
        return True
    function = value.scope.function
    return value.scope is scope or (function is not None and getattr(function.node, "name", "") == "__init__")


def _is_dtype(call: ast.Call, context: Context, scope: Scope) -> bool:
    texts = [ast.unparse(item) for item in call.args]
    if any("dtype" in text or "meta" in text for text in texts):
        return True
    return keyword(call, "dtype") is not None or any(
        context.name(item, scope).startswith(("torch.float", "torch.bfloat", "torch.half")) for item in call.args
    )
