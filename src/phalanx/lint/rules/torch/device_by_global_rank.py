"""The GPU is chosen by the global rank.

## What it does
Finds `set_device`, `torch.device('cuda', …)`, `.cuda(…)` and `device_ids` with the rank within the whole job instead
of the one within the host.

## Why is this bad?
On the second host ranks begin at the number of GPUs of the first: `invalid device ordinal`. It works on one host and
fails on two.

## Example
```diff
+import os
+
 import torch
 import torch.distributed as dist

 dist.init_process_group("nccl")
-torch.cuda.set_device(dist.get_rank())
+torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
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
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT022",
    symptom="prep.device-error",
    cause="device-by-global-rank",
    pattern="fix-device-assignment",
    do="Use LOCAL_RANK, which torchrun sets, or `rank % torch.cuda.device_count()`.",
    needs=("cuda",),
)


def check(context: Context) -> Iterator[Hit]:
    """Device arguments that are the global rank, unchanged. Under `mp.spawn` all ranks are on one host."""
    if context.mentions("Process(", "spawn(", "spawn as"):
        return
    for call, scope in context.module.calls:
        device = _device(call, context, scope)
        if device is not None and context.ranks.kind(device, scope) == "global":
            yield Hit(call, f"`{context.text(device)}` is the rank in the whole job, not the GPU's number on this host")


def _device(call: ast.Call, context: Context, scope: Scope) -> ast.expr | None:
    name = context.name(call.func, scope)
    if name == "torch.cuda.set_device":
        return call.args[0] if call.args else None
    if name == "torch.device" and len(call.args) == 2:
        return call.args[1]
    if name == DDP:
        given = keyword(call, "device_ids")
        return given.elts[0] if isinstance(given, ast.List) and len(given.elts) == 1 else None
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("cuda", "to") and call.args:
        return call.args[0] if isinstance(call.args[0], (ast.Name, ast.Attribute, ast.Call)) else None
    return None
