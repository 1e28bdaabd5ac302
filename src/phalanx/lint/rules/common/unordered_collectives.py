"""Collectives in the order of a set or of a folder's listing.

## What it does
Finds loops over sets, `os.listdir`, `glob` or `iterdir` whose body reaches a collective.

## Why is this bad?
The order of a set differs between processes, because the hashes of strings are salted, and that of a folder between
machines: ranks then pair up different tensors.

## Example
```diff
 import torch
 import torch.distributed as dist

 dist.init_process_group("gloo")
 metrics = {"loss": torch.zeros(1), "accuracy": torch.zeros(1)}
-for name in set(metrics):
+for name in sorted(metrics):
     dist.all_reduce(metrics[name])
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.collectives import BARRIERS
from phalanx.lint.context import Context
from phalanx.lint.patterns import root_name
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import names_holding
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LCM004",
    symptom="fail.communication-error",
    cause="collective-order-depends-on-hash",
    pattern="fix-behavior-logic",
    do="Iterate over `sorted(…)`.",
)

_CALLS = frozenset({"builtins.set", "builtins.frozenset", "os.listdir", "os.scandir", "glob.glob", "glob.iglob"})
_VIEWS = frozenset({"items", "keys", "values"})
_DICTS = frozenset({"dict", "defaultdict", "Counter", "OrderedDict"})
_METHODS = frozenset({"iterdir", "rglob", "difference", "intersection", "union", "symmetric_difference"})


def check(context: Context) -> Iterator[Hit]:
    """Loops over something without an order."""
    for loop, scope in context.module.loops:
        if isinstance(loop, ast.While):
            continue
        if (
            _is_unordered(loop.iter, context, scope)
            or _is_by_rank(loop.iter, context, scope)
            or _is_filled_by_data(loop.iter, context, scope)
        ):
            reached = context.collectives.reached(loop.body, scope)
            if any(operation.name not in BARRIERS for operation in reached):
                text = f"`{reached[0].name}` is called in the order of `{context.text(loop.iter)}`, which differs between ranks"
                yield Hit(loop.iter, text)


def _is_by_rank(node: ast.expr, context: Context, scope: Scope) -> bool:
    """Another list, or the same backwards, on other ranks; or one that every rank shuffles for itself."""
    if isinstance(node, ast.IfExp):
        return context.ranks.depends(node.test, scope) and not isinstance(node.body, ast.Call)
    if not isinstance(node, ast.Name):
        return False
    for call, where in context.calls("random.shuffle", "numpy.random.shuffle"):
        if where is scope and call.args and root_name(call.args[0]) == node.id and not context.mentions("seed("):
            return True
    for call, where in context.methods("reverse"):
        if (
            where is scope
            and root_name(call.func) == node.id
            and context.ranks.guard(call, scope, callers=False) is not None
        ):
            return True
    found = context.inference.reaching(node.id, node, scope)
    return (
        len(found) == 1
        and isinstance(found[0][0].value, ast.IfExp)
        and _is_by_rank(found[0][0].value, context, found[0][1])
    )


def _is_filled_by_data(node: ast.expr, context: Context, scope: Scope) -> bool:
    """A dictionary whose keys are what this rank met in its share of the data."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
        node = node.func.value
    if not isinstance(node, ast.Name):
        return False
    made = [(m, at) for m, at in context.origins(node, scope) if _is_empty(m)]
    return any(context.local.depends(key, where) for m, at in made for key, where in _keys(m, at))


def _is_empty(node: ast.expr) -> bool:
    """`{}`, `dict()`, `defaultdict(float)`: what keys there will be is not written."""
    return not node.keys if isinstance(node, ast.Dict) else _last(node) in _DICTS


def _keys(made: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """What is stored in a dictionary under a key, by the function that makes it."""
    names = names_holding(made, scope)
    stores = (item for kind in (ast.Assign, ast.AugAssign) for item in scope.module.nodes[kind])
    for statement, where in stores:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for target in targets if where is scope else ():
            if isinstance(target, ast.Subscript) and root_name(target) in names:
                yield target.slice, where


def _is_unordered(node: ast.expr, context: Context, scope: Scope, depth: int = 4) -> bool:
    made = context.origins(node, scope) if depth else ()
    return bool(made) and all(_has_no_order(item, context, where, depth) for item, where in made)


def _has_no_order(node: ast.expr, context: Context, scope: Scope, depth: int) -> bool:
    if isinstance(node, (ast.Set, ast.SetComp)):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Sub, ast.BitOr, ast.BitAnd)):
        return _is_unordered(node.left, context, scope, depth - 1)  # `set(a) - set(b)`
    if not isinstance(node, ast.Call):
        return False
    name = context.name(node.func, scope)
    if name in ("builtins.list", "builtins.enumerate", "builtins.tuple") and node.args:
        return _is_unordered(node.args[0], context, scope, depth - 1)
    return name in _CALLS or (isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS)


def _last(node: ast.expr) -> str:
    """`defaultdict` of `collections.defaultdict(list)`."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
