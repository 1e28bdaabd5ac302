"""`device_ids` for a model that stays on the CPU.

## What it does
Finds DistributedDataParallel with `device_ids` in Gloo programs that never move anything to a GPU.

## Why is this bad?
DDP refuses it: `device_ids` is for modules on one GPU.

## Example
```diff
-import os
-
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
-model = DistributedDataParallel(torch.nn.Linear(4, 1), device_ids=[int(os.environ["LOCAL_RANK"])])
+model = DistributedDataParallel(torch.nn.Linear(4, 1))
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument

RULE = Rule(
    code="LPT023",
    symptom="prep.model-loading-failure",
    cause="device-ids-for-cpu-model",
    pattern="fix-device-assignment",
    do="Leave `device_ids` out, or move the model to the device first.",
    needs=("device_ids",),
)


def check(context: Context) -> Iterator[Hit]:
    """Literal Gloo, and no word of a GPU."""
    if context.backends != {"gloo"} or context.mentions("cuda", ".to(", "torch.device", "xpu"):
        return
    for call, scope in context.calls(DDP):
        given = argument(call, 1, "device_ids")
        if (
            given is not None
            and context.constant(given, scope) is None
            and not isinstance(given, (ast.Constant, ast.IfExp))
        ):
            yield Hit(call, "DDP gets `device_ids`, but the model is on the CPU")
