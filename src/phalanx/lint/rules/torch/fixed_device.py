"""A fixed GPU number in a job with one process per GPU.

## What it does
Finds `cuda:0`, `.cuda(0)`, `set_device(0)` and `device_ids=[0]` in programs that make an NCCL group, outside of
conditions on the rank.

## Why is this bad?
Every process of a host takes the same GPU; NCCL refuses it (`Duplicate GPU detected`) or memory runs out.

## Example
```diff
 import os

 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

+local_rank = int(os.environ["LOCAL_RANK"])
+torch.cuda.set_device(local_rank)
 dist.init_process_group("nccl")
-device = torch.device("cuda:0")
+device = torch.device("cuda", local_rank)
 model = DistributedDataParallel(torch.nn.Linear(4, 1).to(device))
 model(torch.randn(8, 4).to(device)).sum().backward()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.infer import DDP
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT021",
    symptom="perf.unexpected-parallelization-or-device",
    cause="all-ranks-on-one-gpu",
    pattern="fix-device-assignment",
    do="Use LOCAL_RANK: `torch.device('cuda', local_rank)`.",
    needs=("nccl",),
)


def check(context: Context) -> Iterator[Hit]:
    """Devices by a literal number. Programs that also run without a group use them on that path."""
    if "nccl" not in context.backends or not context.calls(INIT) or context.is_managed:
        return
    for call, scope in context.module.calls:
        if (
            not _is_fixed(call, context, scope)
            or context.guard(call, scope) is not None
            or _is_single_path(call, context)
        ):
            continue
        yield Hit(call, f"`{context.text(call)}` is the same GPU on every rank")


def _is_fixed(call: ast.Call, context: Context, scope: Scope) -> bool:
    name = context.name(call.func, scope)
    first = context.constant(call.args[0], scope) if call.args else None
    if name == "torch.cuda.set_device":
        return first == 0 or first == "cuda:0"
    if name == "torch.device":
        return first == "cuda:0"
    if name == DDP:
        given = keyword(call, "device_ids")
        return isinstance(given, ast.List) and len(given.elts) == 1 and context.constant(given.elts[0], scope) == 0
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("cuda", "to"):
        return isinstance(call.args[0] if call.args else None, ast.Constant) and (
            first == "cuda:0" or (first == 0 and call.func.attr == "cuda" and not isinstance(first, bool))
        )
    return False


def _is_single_path(call: ast.Call, context: Context) -> bool:
    """Under a condition: the other branch is mostly the one for several processes."""
    return any(
        isinstance(parent, (ast.If, ast.IfExp)) and "__main__" not in ast.unparse(parent.test)
        for parent, _ in context.module.ancestors(call)
    )
