"""The learning rate grows with the square of the number of ranks.

## What it does
Finds learning rates multiplied by a power of the world size.

## Why is this bad?
With averaged gradients the learning rate grows at most linearly with the number of ranks (often less); by a power of
it training diverges.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
world = dist.get_world_size()
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * world**2)
dist.destroy_process_group()
```
Use instead:
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
world = dist.get_world_size()
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * world)
dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT084",
    symptom="perf.non-convergence",
    cause="learning-rate-too-high",
    pattern="fix-learning-rate",
    do="Scale linearly at most, with a warm-up.",
    needs=("**",),
)


def check(context: Context) -> Iterator[Hit]:
    """Powers above one in `lr`."""
    for call, scope in context.module.calls:
        rate = keyword(call, "lr")
        if rate is None or not context.name(call.func, scope).startswith("torch.optim."):
            continue
        for node in ast.walk(rate):
            if (
                isinstance(node, ast.BinOp)
                and isinstance(node.op, ast.Pow)
                and any(_is_world(n, context, scope) for n in ast.walk(node.left))
            ):
                power = context.constant(node.right, scope)
                if isinstance(power, (int, float)) and power > 1:
                    yield Hit(call, f"The learning rate is scaled by `{context.text(node)}`")


def _is_world(node: ast.AST, context: Context, scope: Scope) -> bool:
    if isinstance(node, ast.Name) and "world" in node.id.lower():
        return True
    return isinstance(node, ast.Call) and context.name(node.func, scope).endswith(("get_world_size", ".size"))
