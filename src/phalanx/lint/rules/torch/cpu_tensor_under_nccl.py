"""A tensor on the CPU in a collective over NCCL.

## What it does
Finds tensors made without a device (`torch.tensor(…)`, `torch.zeros(…)`) that go straight into a collective of a
group whose only backend is NCCL.

## Why is this bad?
NCCL has no operations for the CPU: `No backend type associated with device type cpu`.

## Example
```diff
 import os

 import torch
 import torch.distributed as dist

 torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
 dist.init_process_group("nccl")
-total = torch.tensor([1.0])
+total = torch.tensor([1.0], device="cuda")
 dist.all_reduce(total)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import has_rest, keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT014",
    symptom="fail.communication-error",
    cause="cpu-tensor-under-nccl",
    pattern="fix-device-assignment",
    do="Make the tensor on the rank's device (`device=…`), or move it there first.",
    needs=("nccl",),
)

_MAKERS = frozenset({f"torch.{name}" for name in ("tensor", "zeros", "ones", "empty", "full", "arange", "FloatTensor", "LongTensor", "Tensor")})  # fmt: skip
_TENSORS = ("torch.distributed.all_reduce", "torch.distributed.broadcast", "torch.distributed.reduce")


def check(context: Context) -> Iterator[Hit]:
    """Collectives over the default group."""
    if context.backends != {"nccl"} or context.mentions("set_default_device", "set_default_tensor_type"):
        return
    if any(_enters_device(other) for other in context.contexts):
        return
    for call, scope in context.calls(*_TENSORS):
        tensor = call.args[0] if call.args and context.collectives.operation(call, scope) else None
        maker = _maker(tensor, context, scope) if tensor is not None else None
        if maker is not None:
            yield Hit(
                call,
                f"`{context.text(tensor or call)}` is on the CPU, but the backend is NCCL",
                also=((context.module.file, maker.lineno, context.module.line(maker.lineno)),),
            )


def _enters_device(context: Context) -> bool:
    """`with torch.device("cuda"):` makes tensors there."""
    entered = (
        (i.context_expr, s) for w, s in context.module.nodes[ast.With] if isinstance(w, ast.With) for i in w.items
    )
    return any(context.is_a(item, scope, "torch.device") for item, scope in entered)


def _maker(node: ast.expr, context: Context, scope: Scope) -> ast.Call | None:
    made, where = context.origin(node, scope)
    if not isinstance(made, ast.Call) or context.name(made.func, where) not in _MAKERS or has_rest(made):
        return None
    return made if keyword(made, "device") is None and where.module is context.module else None
