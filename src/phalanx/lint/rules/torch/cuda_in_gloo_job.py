"""CUDA is used without a question in a job that is meant for CPUs too.

## What it does
Finds CUDA calls without any condition in Gloo programs that put nothing else on a GPU, or that otherwise ask
`torch.cuda.is_available()`.

## Why is this bad?
On a machine or build without CUDA the call raises an error, while the rest of the program would work there.

## Example
```diff
 import time

 import torch
 import torch.distributed as dist

 DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
 dist.init_process_group("gloo")
 began = time.time()
+if DEVICE.type == "cuda":
-torch.cuda.synchronize()
+    torch.cuda.synchronize()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT024",
    symptom="prep.device-error",
    cause="no-cuda-device",
    pattern="fix-device-assignment",
    do="Choose the device from what is there and guard CUDA calls by it, or make the group with NCCL if the job needs GPUs.",
    needs=("cuda",),
)

_CALLS = (
    "torch.cuda.synchronize",
    "torch.cuda.set_device",
    "torch.cuda.current_device",
    "torch.cuda.Stream",
    "torch.cuda.Event",
)


def check(context: Context) -> Iterator[Hit]:
    """Unconditional CUDA in a file whose only literal backend is Gloo."""
    if context.backends != {"gloo"} or not context.calls(INIT) or context.mentions("distributed.rpc"):
        return
    moves = [(c, s) for c, s in context.methods("cuda", "to") if _moves(c, context, s)]
    places = {context.module.statement(c) for c, _ in (*context.calls(*_CALLS), *context.methods("cuda", "to"))}
    if len(places) > 1 and not context.mentions("is_available"):
        return  # a job for GPUs throughout
    for call, _ in (*context.calls(*_CALLS), *moves):
        tests = [ast.unparse(p.test) for p, _ in context.module.ancestors(call) if isinstance(p, (ast.If, ast.IfExp))]
        if not any(word in test for test in tests for word in ("cuda", "gpu", "device", "available")):
            yield Hit(
                call,
                f"`{context.text(call)}` needs CUDA, in a program that uses Gloo and asks nowhere whether there is a GPU",
            )
            return


def _moves(call: ast.Call, context: Context, scope: Scope) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
        return not context.name(call.func.value, scope).startswith("torch")
    target = call.args[0] if call.args else None
    if isinstance(target, ast.JoinedStr):
        return ast.unparse(target)[2:6] == "cuda"
    value = context.constant(target, scope)
    return isinstance(value, str) and value.startswith("cuda")
