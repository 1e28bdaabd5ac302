"""Each rank looks for the others at another port.

## What it does
Finds MASTER_ADDR, MASTER_PORT or `init_method` values that depend on the rank.

## Why is this bad?
All ranks must meet at one address and port, that of rank 0; with different ones each waits alone until the time-out.

## Example
```python
import os

import torch.distributed as dist

rank = int(os.environ["RANK"])
os.environ["MASTER_PORT"] = str(29500 + rank)
dist.init_process_group("gloo")
dist.destroy_process_group()
```
Use instead:
```python
import os

import torch.distributed as dist

rank = int(os.environ["RANK"])
os.environ["MASTER_PORT"] = "29500"
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

RULE = Rule(
    code="LPT089",
    symptom="comm.hang-timeout",
    cause="rendezvous-differs-between-ranks",
    pattern="fix-communication-configuration",
    do="Use the same address and port on every rank.",
    needs=("MASTER_", "init_method"),
)


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
        if context.constant(target.slice, scope) in ("MASTER_ADDR", "MASTER_PORT") and context.ranks.depends(
            node.value, scope
        ):
            yield Hit(node, f"`{context.text(node.value)}` is another on every rank")
    for call, scope in context.calls(INIT):
        method = argument(call, 1, "init_method")
        if method is not None and context.ranks.depends(method, scope):
            yield Hit(call, f"`init_method={context.text(method)}` is another on every rank")
