"""All ranks compute on the first GPU.

## What it does
Finds NCCL jobs that move the model to `cuda` without an index although nothing chooses the rank's device
(`set_device`, `device_id`, CUDA_VISIBLE_DEVICES).

## Why is this bad?
`cuda` means device 0 in every process. NCCL then reports a duplicate GPU or hangs, and device 0 runs out of memory
while the others idle.

## Example
```diff
 import os

 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

+local_rank = int(os.environ["LOCAL_RANK"])
+torch.cuda.set_device(local_rank)
 dist.init_process_group("nccl")
 model = DistributedDataParallel(torch.nn.Linear(4, 1).cuda())
 model(torch.randn(8, 4).cuda()).sum().backward()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Calls, Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT020",
    symptom="perf.unexpected-parallelization-or-device",
    cause="all-ranks-on-one-gpu",
    pattern="fix-device-assignment",
    do="Call `torch.cuda.set_device(local_rank)` with LOCAL_RANK before anything is put on a GPU.",
    needs=("nccl",),
)

_PINS = ("set_device", "device_id", "CUDA_VISIBLE_DEVICES", "torch.cuda.device(", "cuda:", "device_count", "get_device", "set_visible_devices", "device_mesh")  # fmt: skip


def check(context: Context) -> Iterator[Hit]:
    """Programs that set up NCCL themselves and never mention a device of their own."""
    if "nccl" not in context.backends or context.is_managed or context.mentions(*_PINS) or context.has_unknown_imports:
        return
    if any(_is_of_rank(call, context, scope) for call, scope in _moves(context)):
        return
    for call, scope in context.methods("cuda", "to"):
        target = call.args[0] if call.args else None
        is_bare = (
            isinstance(call.func, ast.Attribute) and call.func.attr == "cuda" and target is None and not call.keywords
        )
        is_plain = target is not None and (
            context.constant(target, scope) == "cuda" or _is_device(target, context, scope)
        )
        if (is_bare or is_plain) and context.name(call.func, scope) != "torch.cuda":
            yield Hit(call, "Every rank uses GPU 0: nothing chooses the device of the rank")
            return


def _moves(context: Context) -> Calls:
    """Calls that name a device, in the whole program."""
    return [*context.methods_in_program("cuda", "to"), *context.calls_in_program("torch.device")]


def _is_of_rank(call: ast.Call, context: Context, scope: Scope) -> bool:
    """Whether a device is chosen by the rank, or may be by what is not known."""
    given = [*call.args, *(item.value for item in call.keywords)]
    return any(context.ranks.depends(made, at) for item in given for made, at in context.origins(item, scope))


def _is_device(node: ast.expr, context: Context, scope: Scope) -> bool:
    """`torch.device("cuda")`, also where the processor is the second choice."""
    made = [v.node.args[0] for v in context.values(node, scope) if v.type == "torch.device" and isinstance(v.node, ast.Call) and v.node.args]  # fmt: skip
    return any(context.constant(item.body if isinstance(item, ast.IfExp) else item, scope) == "cuda" for item in made)
