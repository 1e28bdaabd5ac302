"""A rank sends to itself, or past the last rank.

## What it does
Finds `send` and `recv` whose partner is this rank, or the next or the one before it on every rank: the last rank has no
next one, rank 0 none before it.

## Why is this bad?
The call waits for its own other half, which comes later, or is refused: `rank + 1` of the last rank is no rank.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
-dist.send(torch.zeros(1), dst=dist.get_rank())
+dist.send(torch.zeros(1), dst=(dist.get_rank() + 1) % dist.get_world_size())
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT094",
    symptom="perf.hang",
    cause="point-to-point-deadlock",
    pattern="fix-behavior-logic",
    do="Name another rank.",
    needs=("send", "recv"),
)

_CALLS = ("torch.distributed.send", "torch.distributed.recv", "torch.distributed.isend", "torch.distributed.irecv")


def check(context: Context) -> Iterator[Hit]:
    """The rank itself, also through a variable."""
    for call, scope in context.calls(*_CALLS):
        peer = argument(call, 1, "dst" if "send" in context.name(call.func, scope) else "src")
        made, where = context.origin(peer, scope) if peer is not None else (call, scope)
        if isinstance(made, ast.Call) and context.name(made.func, where) == "torch.distributed.get_rank":
            yield Hit(call, "The partner is this rank itself")
        elif peer is not None and _is_neighbour(made, context, where) and context.guard(call, scope) is None:
            end = "the last rank" if isinstance(made.op, ast.Add) else "rank 0"
            do = "Leave the end out by a condition on the rank, or close the ring by `% world_size`."
            yield Hit(call, f"Every rank takes `{context.text(peer)}` as its partner, {end} too, which has none", do=do)


def _is_neighbour(node: ast.expr, context: Context, scope: Scope) -> TypeGuard[ast.BinOp]:
    """`rank + 1` or `rank - 1`; negative ranks of the program's own making are not known."""
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, (ast.Add, ast.Sub))
        and context.constant(node.right, scope) == 1
        and context.ranks.kind(node.left, scope) == "global"
    )
