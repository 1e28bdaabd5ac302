"""Each rank looks for the others at another port.

## What it does
Finds MASTER_ADDR, MASTER_PORT or `init_method` values that depend on the rank, or that every rank draws
for itself.

## Why is this bad?
All ranks must meet at one address and port, that of rank 0; with different ones each waits alone until the time-out.

## Example
```diff
 import os

 import torch.distributed as dist

 rank = int(os.environ["RANK"])
-os.environ["MASTER_PORT"] = str(29500 + rank)
+os.environ["MASTER_PORT"] = "29500"
 dist.init_process_group("gloo")
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT089",
    symptom="comm.hang-timeout",
    cause="rendezvous-differs-between-ranks",
    pattern="fix-communication-configuration",
    do="Use the same address and port on every rank.",
    needs=("MASTER_", "init_method"),
)

_DEPTH = 4
_DRAWS = ("random.rand", "random.choice", "numpy.random.", "secrets.", "os.getpid", "time.time", "uuid.")
_STARTS = ("spawn", "Process(", "subprocess", "seed(", "bcast", "elastic", "ray.")


def check(context: Context) -> Iterator[Hit]:
    """Values that hold the rank."""
    for node, scope in context.module.nodes[ast.Assign]:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if (
            not isinstance(target, ast.Subscript)
            or not isinstance(node, ast.Assign)
            or context.name(target.value, scope) != "os.environ"
        ):
            continue
        if context.constant(target.slice, scope) in ("MASTER_ADDR", "MASTER_PORT") and (
            context.ranks.depends(node.value, scope) or _is_drawn(node, node.value, context, scope)
        ):
            yield Hit(node, f"`{context.text(node.value)}` is another on every rank")
    for call, scope in context.calls(INIT):
        method = argument(call, 1, "init_method")
        if method is not None and (context.ranks.depends(method, scope) or _is_drawn(call, method, context, scope)):
            yield Hit(call, f"`init_method={context.text(method)}` is another on every rank")


def _is_drawn(node: ast.AST, value: ast.expr, context: Context, scope: Scope) -> bool:
    """Whether every rank draws or probes the port for itself: the ranks are started elsewhere, and each comes by here."""
    if context.mentions(*_STARTS) or any(True for _ in context.within(node, ast.If)):
        return False
    ranks = (argument(call, 4, "rank") for call, _ in context.calls_in_program(INIT))
    if not any(rank is not None and context.ranks.depends(rank, scope) for rank in ranks):
        return False
    return _holds_draw(value, context, scope, _DEPTH)


def _holds_draw(value: ast.expr, context: Context, scope: Scope, depth: int) -> bool:
    for item in ast.walk(value):
        if isinstance(item, ast.Call) and context.name(item.func, scope).startswith(_DRAWS):
            return True
        if isinstance(item, ast.Attribute) and item.attr == "getsockname":
            return True
        if isinstance(item, (ast.Name, ast.Call)) and depth:
            made, where = context.origin(item, scope)
            if made is not item and _holds_draw(made, context, where, depth - 1):
                return True
    return False
