"""Training calls the inner model, past its wrapper.

## What it does
Finds forward passes through `.module`, or through the variable that still holds the unwrapped model, whose loss is
then used for a backward pass.

## Why is this bad?
DDP and FSDP act in the wrapper's forward. Past it gradients are never averaged (DDP) or parameters never gathered
(FSDP): each rank trains a model of its own.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
net = torch.nn.Linear(4, 1)
model = DistributedDataParallel(net)
loss = model.module(torch.randn(8, 4)).square().mean()
loss.backward()
dist.destroy_process_group()
```
Use instead:
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
net = torch.nn.Linear(4, 1)
model = DistributedDataParallel(net)
loss = model(torch.randn(8, 4)).square().mean()
loss.backward()
dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP, FSDP
from phalanx.lint.patterns import assigned_to, backward_uses, is_without_gradients, wrapped_by
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT030",
    symptom="perf.unexpected-intermediate-result",
    cause="gradients-not-synchronised",
    pattern="fix-distributed-api-usage",
    why="DDP and FSDP act in the wrapper's forward. Past it gradients are never averaged (DDP) or parameters never gathered (FSDP): each rank trains a model of its own.",
    do="Call the wrapped model.",
)


def check(context: Context) -> Iterator[Hit]:
    """Calls of `x.module(…)` or of the wrapped variable, outside of `no_grad`, that lead to a backward pass."""
    inner = wrapped_by(context, DDP, FSDP)
    for call, scope in context.module.calls:
        is_past = _is_module(call, context, scope) or _is_inner(call, inner, scope)
        if not is_past or is_without_gradients(context, call):
            continue
        names = assigned_to(context, call)
        is_used = any(backward_uses(context, scope, name) for name in names) or _is_in_backward(call, context)
        if is_used:
            yield Hit(
                call, f"`{context.text(call.func)}` is called, not the wrapped model: gradients are not synchronised"
            )


def _is_module(call: ast.Call, context: Context, scope: Scope) -> bool:
    func = call.func
    if not isinstance(func, ast.Attribute):
        return False
    target = func if func.attr == "module" else func.value if func.attr == "forward" else None
    if not isinstance(target, ast.Attribute) or target.attr != "module":
        return False
    return any(value.type in (DDP, FSDP) for value in context.values(target.value, scope))


def _is_inner(call: ast.Call, inner: dict[tuple[str, Scope], ast.Call], scope: Scope) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    wrap = inner.get((name, scope))
    return wrap is not None and call.lineno > wrap.lineno


def _is_in_backward(call: ast.Call, context: Context) -> bool:
    return any(
        isinstance(p, ast.Call) and isinstance(p.func, ast.Attribute) and p.func.attr == "backward"
        for p, _ in context.module.ancestors(call)
    )
