"""Parameters are frozen after the model was wrapped.

## What it does
Finds `requires_grad = False` or `requires_grad_(False)` on parameters of a DistributedDataParallel model.

## Why is this bad?
DDP expects a gradient for every parameter that needed one when it was constructed. Without it the next backward pass
reports unused parameters or waits for a bucket that never fills.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 1))
for parameter in model.parameters():
    parameter.requires_grad = False
dist.destroy_process_group()
```
Use instead:
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
net = torch.nn.Linear(4, 1)
for parameter in net.parameters():
    parameter.requires_grad = False
model = DistributedDataParallel(net)
dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT035",
    symptom="fail.communication-error",
    cause="requires-grad-changed-after-wrapping",
    pattern="fix-model-construction",
    why="DDP expects a gradient for every parameter that needed one when it was constructed. Without it the next backward pass reports unused parameters or waits for a bucket that never fills.",
    do="Freeze parameters before wrapping, or wrap again after a change.",
    needs=("requires_grad",),
)


def check(context: Context) -> Iterator[Hit]:
    """Loops over the parameters of a wrapped model that switch gradients off."""
    for loop, scope in context.module.loops:
        if isinstance(loop, ast.While) or not _of_wrapped(loop.iter, context, scope):
            continue
        for node in ast.walk(loop):
            is_switch = isinstance(node, ast.Assign) and getattr(node.targets[0], "attr", "") == "requires_grad"
            if (
                is_switch
                and isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Constant)
                and node.value.value is False
            ):
                yield Hit(node, "Parameters are frozen after the model was wrapped in DDP")
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "attr", "") == "requires_grad_"
                and node.args
                and context.constant(node.args[0], scope) is False
            ):
                yield Hit(node, "Parameters are frozen after the model was wrapped in DDP")
    for call, scope in context.module.calls:
        given = [item for item in call.args if _reaches_wrapper(item, context, scope)]
        if given and _freezes(context.inference.symbol(call.func, scope)):
            yield Hit(call, "Parameters are frozen after the model was wrapped in DDP")
    for call, scope in context.methods("requires_grad_"):
        if (
            isinstance(call.func, ast.Attribute)
            and call.args
            and context.constant(call.args[0], scope) is False
            and _reaches_wrapper(call.func.value, context, scope)
        ):
            yield Hit(call, "Parameters are frozen after the model was wrapped in DDP")


def _freezes(function: Scope | None) -> bool:
    """A helper of the project that switches gradients off and never on."""
    text = ast.unparse(function.node) if function is not None and function.is_function else ""
    return "requires_grad = False" in text or "requires_grad_(False)" in text


def _of_wrapped(node: ast.expr, context: Context, scope: Scope) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr not in ("parameters", "named_parameters"):
        return False
    return _reaches_wrapper(func.value, context, scope)


def _reaches_wrapper(node: ast.expr, context: Context, scope: Scope) -> bool:
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr != "module"):
        node = node.value
    base = node.value if isinstance(node, ast.Attribute) else node
    return any(value.type == DDP for value in context.values(base, scope))
