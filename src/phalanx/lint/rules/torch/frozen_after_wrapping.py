"""Parameters are frozen after the model was wrapped.

## What it does
Finds `requires_grad = False` or `requires_grad_(False)` on parameters of a DistributedDataParallel model.

## Why is this bad?
DDP expects a gradient for every parameter that needed one when it was constructed. Without it the next backward pass
reports unused parameters or waits for a bucket that never fills.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
-model = DistributedDataParallel(torch.nn.Linear(4, 1))
+net = torch.nn.Linear(4, 1)
-for parameter in model.parameters():
+for parameter in net.parameters():
     parameter.requires_grad = False
+model = DistributedDataParallel(net)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Calls, Context
from phalanx.lint.infer import DDP
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT035",
    symptom="fail.communication-error",
    cause="requires-grad-changed-after-wrapping",
    pattern="fix-model-construction",
    do="Freeze parameters before wrapping, or wrap again after a change.",
    needs=("requires_grad",),
)


_FROZEN = "Parameters are frozen after the model was wrapped in DDP"
_FREED = "Parameters that were frozen when DDP was constructed need gradients from here on; DDP never averages them"


def check(context: Context) -> Iterator[Hit]:
    """Switches of gradients in a wrapped model: off for a part of it, or on where they were off before."""
    if not context.calls_in_program(DDP):
        return
    switches = sorted(_switches(context), key=lambda item: item[0].lineno)
    wraps = context.calls(DDP)
    for node, model, value, scope in switches:
        if not _reaches_wrapper(model, context, scope) and not _is_inner(model, node, scope, wraps):
            continue
        is_whole = isinstance(model, ast.Name) or getattr(model, "attr", "") == "module"
        if value is False and not (is_whole and any(v is not False for n, _, v, _ in switches if n is not node)):
            yield Hit(node, _FROZEN)
        elif value is not False and _was_frozen(node, scope, switches, wraps, context):
            yield Hit(node, _FREED)


Switch = tuple[ast.stmt | ast.expr, ast.expr, object, Scope]


def _switches(context: Context) -> Iterator[Switch]:
    """Every place that sets `requires_grad`, the model whose parameters it is for, and to what (None: not known)."""
    for loop, scope in context.module.loops:
        func = loop.iter.func if not isinstance(loop, ast.While) and isinstance(loop.iter, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr in ("parameters", "named_parameters"):
            for node, value in _settings(loop, context, scope):
                yield node, func.value, value, scope
    for call, scope in context.methods("requires_grad_"):
        value = context.constant(call.args[0], scope) if call.args else True
        if isinstance(call.func, ast.Attribute):
            yield call, call.func.value, value, scope
    for call, scope in context.module.calls:
        function = context.inference.symbol(call.func, scope)
        if function is not None and function.is_function and "requires_grad" in function.module.source.text:
            found = {value for _, value in _settings(function.node, context, function)}
            model = call.args[0] if call.args else _own_model(function)
            if len(found) == 1 and model is not None:
                yield call, model, found.pop(), scope


def _own_model(method: Scope) -> ast.expr | None:
    """`self.net` of a method that loops over `self.net.parameters()`."""
    loops = (loop.iter for loop, at in method.module.loops if at is method and isinstance(loop, ast.For))
    funcs = (call.func.value for call in loops if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute))
    return next((model for model in funcs if getattr(getattr(model, "value", None), "id", "") == "self"), None)


def _is_inner(model: ast.expr, node: ast.AST, scope: Scope, wraps: Calls) -> bool:
    """The model, or a part of it, that a call above has wrapped under another name."""
    above = {
        ast.unparse(w.args[0]) for w, at in wraps if at is scope and w.args and w.lineno < getattr(node, "lineno", 0)
    }
    parts = [model]
    while isinstance(parts[-1], ast.Attribute):
        parts.append(parts[-1].value)
    return any(ast.unparse(part) in above for part in parts)


def _settings(code: ast.AST, context: Context, scope: Scope) -> Iterator[tuple[ast.stmt | ast.expr, object]]:
    for node in ast.walk(code):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "attr", "") == "requires_grad":
            yield node, context.constant(node.value, scope)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "requires_grad_":
            yield node, context.constant(node.args[0], scope) if node.args else True


def _was_frozen(node: ast.AST, scope: Scope, switches: list[Switch], wraps: Calls, context: Context) -> bool:
    """Whether a switch stands above the last wrapping, this one below it, and no wrapping follows."""
    line = getattr(node, "lineno", 0)
    here = [call.lineno for call, where in wraps if where is scope]
    off = [n.lineno for n, _, value, where in switches if where is scope and value is not True]
    return bool(here) and max(here) < line and any(number < max(here) for number in off)


def _reaches_wrapper(node: ast.expr, context: Context, scope: Scope) -> bool:
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr != "module"):
        node = node.value
    base = node.value if isinstance(node, ast.Attribute) else node
    return any(value.type == DDP for value in context.values(base, scope))
