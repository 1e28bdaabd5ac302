"""The learning rate grows with the square of the number of ranks.

## What it does
Finds learning rates multiplied by the world size more than once, by a power of it or in two places.

## Why is this bad?
With averaged gradients the learning rate grows at most linearly with the number of ranks (often less); by a power of
it training diverges.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 world = dist.get_world_size()
 model = DistributedDataParallel(torch.nn.Linear(4, 1))
-optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * world**2)
+optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * world)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import has_rest
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT084",
    symptom="perf.non-convergence",
    cause="learning-rate-too-high",
    pattern="fix-learning-rate",
    do="Scale linearly at most, with a warm-up.",
    needs=("world", "size"),
)

_DEPTH = 12


def check(context: Context) -> Iterator[Hit]:
    """The learning rate as a product: how often the number of ranks is a factor."""
    for call, scope in context.module.calls:
        if not context.name(call.func, scope).startswith("torch.optim.") or has_rest(call):
            continue
        rate = argument(call, 1, "lr")
        power = _power(rate, context, scope, _DEPTH) if rate is not None else 0
        if rate is not None and power > 1:
            times = "twice" if power == 2 else f"to the power of {power:g}"
            yield Hit(call, f"The learning rate `{context.text(rate)}` holds the number of ranks {times}")


def _power(node: ast.expr, context: Context, scope: Scope, depth: int) -> float:
    """The exponent of the number of ranks in an expression; 0 where it is none of its factors, or not known."""
    if not depth:
        return 0
    if isinstance(node, ast.BinOp):
        left = _power(node.left, context, scope, depth)
        if isinstance(node.op, ast.Pow):
            power = context.constant(node.right, scope)
            return left * power if isinstance(power, (int, float)) else 0
        right = _power(node.right, context, scope, depth)
        sign = {ast.Mult: 1, ast.Div: -1, ast.FloorDiv: -1}.get(type(node.op))
        return left + sign * right if sign is not None else min(left, right)
    if isinstance(node, ast.Call):
        name = context.name(node.func, scope)
        if name.endswith(("get_world_size", ".size")):
            return 1
        if name in ("builtins.float", "builtins.int") and node.args:
            return _power(node.args[0], context, scope, depth - 1)
    made, where = context.origin(node, scope)
    if made is not node:
        return _power(made, context, where, depth - 1)
    return 1 if isinstance(node, ast.Name) and "world" in node.id.lower() else 0
