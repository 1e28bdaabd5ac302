"""A tensor whose shape or type differs between ranks goes into a collective.

## What it does
Finds collectives on `bincount` without `minlength`, `unique`, `nonzero`, boolean selections, and on tensors that a
rank condition converts or cuts.

## Why is this bad?
All ranks must pass tensors of the same shape and type. Sizes that depend on a rank's own data differ sooner or later;
the collective then fails, hangs or returns garbage.

## Example
```diff
 import torch
 import torch.distributed as dist

 dist.init_process_group("gloo")
 labels = torch.randint(0, 10, (64,))
-counts = torch.bincount(labels)
+counts = torch.bincount(labels, minlength=10)
 dist.all_reduce(counts)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import root_name
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument, returns
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LCM009",
    symptom="fail.communication-error",
    cause="collective-shape-mismatch",
    pattern="fix-tensor-api-usage",
    do="Give the tensor the same shape and type on every rank (`minlength`, padding to an agreed size); for objects of any size use `all_gather_object`.",
)

_REDUCERS = frozenset(
    {
        "all_reduce",
        "broadcast",
        "reduce",
        "all_gather",
        "allreduce",
        "allreduce_",
        "gather",
        "grouped_allreduce",
        "broadcast_",
    }
)
_UNSIZED = frozenset(
    {"torch.unique", "torch.nonzero", "torch.masked_select", "torch.argwhere", "torch.unique_consecutive"}
)
_SHAPED = frozenset({f"torch.{name}" for name in ("zeros", "ones", "empty", "randn", "rand")})
_DEPTH = 5
_SAME = frozenset({"to", "cuda", "clone", "detach", "contiguous", "cpu", "bool"})
_CONVERTS = frozenset({"double", "float", "half", "bfloat16", "long", "int", "reshape", "view", "flatten", "narrow"})


def check(context: Context) -> Iterator[Hit]:
    """The tensor argument of collectives over all ranks."""
    for call, scope in context.module.calls:
        name = context.collectives.operation(call, scope)
        if name in _REDUCERS and context.name(call.func, scope).startswith(("torch.distributed.", "horovod.")):
            place = 1 if name == "all_gather" else 0
            tensor = call.args[place] if len(call.args) > place else None
            reason = _reason(tensor, context, scope, _DEPTH) if tensor is not None else ""
            if reason:
                yield Hit(call, f"The tensor given to `{name}` {reason}")


def _reason(node: ast.expr, context: Context, scope: Scope, depth: int) -> str:
    if isinstance(node, ast.IfExp) and context.ranks.depends(node.test, scope):
        changed = [
            part
            for part in (node.body, node.orelse)
            if getattr(getattr(part, "func", None), "attr", "") in _CONVERTS or isinstance(part, ast.Subscript)
        ]
        return f"is `{context.text(changed[0])}` on some ranks only" if changed else ""
    if isinstance(node, ast.Call):
        return _of_call(node, context, scope, depth)
    if isinstance(node, ast.Subscript) and _is_mask(node.slice, context, scope):
        return f"has a length that depends on the data: `{context.text(node)}`"
    if isinstance(node, ast.Name) and depth:
        for binding, where in context.inference.reaching(node.id, node, scope):
            if binding.kind == "param":
                handed = context.inference.handed(where, node.id)
                found = next((r for given, at in handed if (r := _reason(given, context, at, depth - 1))), "")
                if found:
                    return found
            if binding.kind != "assign" or binding.path or binding.value is None:
                continue
            value = binding.value
            is_same = isinstance(value, ast.Call) and root_name(value) == node.id
            if is_same and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
                if value.func.attr in _CONVERTS and context.ranks.guard(value, where, callers=False) is not None:
                    return f"is converted by `{context.text(value)}` on some ranks only"
                continue
            found = _reason(value, context, where, depth - 1)
            if found:
                return found
    return ""


def _of_call(node: ast.Call, context: Context, scope: Scope, depth: int) -> str:
    name = context.name(node.func, scope)
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name == "torch.bincount" or (method == "bincount" and name != "numpy.bincount"):
        least = argument(node, 2 if name == "torch.bincount" else 1, "minlength")
        if least is None:
            return "has a length that depends on the data: `bincount` without `minlength`"
        return (
            f"has a length that depends on the rank: `{context.text(least)}`"
            if context.ranks.depends(least, scope)
            else ""
        )
    if name in _SHAPED and any(
        context.ranks.depends(item, scope)
        for item in (*node.args, *(k.value for k in node.keywords if k.arg in ("size", "dtype")))
    ):
        return f"has another shape or type on every rank: `{context.text(node)}`"
    if name in ("torch.cat", "torch.concat") and node.args and depth:
        parts = context.inference.elements(node.args[0], scope)
        return next((found for part, at in parts if (found := _reason(part, context, at, depth - 1))), "")
    function = context.inference.symbol(node.func, scope)
    if function is not None and function.is_function and depth:
        parts = ((result, function) for result in returns(function))
        return next((found for part, at in parts if (found := _reason(part, context, at, depth - 1))), "")
    if name in _UNSIZED:
        return f"has a length that depends on the data: `{name}`"
    if isinstance(node.func, ast.Attribute) and method in _CONVERTS | _SAME:
        return _reason(node.func.value, context, scope, depth)
    return ""


def _is_mask(index: ast.expr, context: Context, scope: Scope) -> bool:
    """`x[pred != y]`: as many elements as the condition holds for."""
    while isinstance(index, ast.Call) and isinstance(index.func, ast.Attribute) and index.func.attr in _SAME:
        index = index.func.value
    if isinstance(index, (ast.Compare, ast.UnaryOp)):
        return isinstance(index, ast.Compare) or isinstance(index.op, ast.Invert)
    made = context.origins(index, scope) if isinstance(index, ast.Name) else ()
    return bool(made) and all(item is not index and _is_mask(item, context, at) for item, at in made)
