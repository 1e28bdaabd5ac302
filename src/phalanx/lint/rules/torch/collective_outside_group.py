"""A collective before the group exists, or after it was destroyed.

## What it does
Finds collectives that stand before `init_process_group` or after `destroy_process_group` in the same block.

## Why is this bad?
There is no default group at that point: the call raises an error, or tears the job down while other ranks still work.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
loss = torch.zeros(1)
dist.destroy_process_group()
dist.all_reduce(loss)
```
Use instead:
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
loss = torch.zeros(1)
dist.all_reduce(loss)
dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.patterns import block_of, following
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT001",
    symptom="fail.communication-error",
    cause="group-already-destroyed",
    pattern="fix-distributed-api-usage",
    why="There is no default group at that point: the call raises an error, or tears the job down while other ranks still work.",
    do="Move the call between `init_process_group` and `destroy_process_group`.",
    needs=("process_group",),
)

_TEARDOWN = "torch.distributed.destroy_process_group"
_MAKERS = frozenset({"init_process_group", "DistributedDataParallel()", "FullyShardedDataParallel()"})


def check(context: Context) -> Iterator[Hit]:
    """Statements of the block that makes or destroys the group."""
    for call, scope in context.calls(_TEARDOWN):
        if call.args or call.keywords or not isinstance(context.module.statement(call), ast.Expr):
            continue
        for operation in context.collectives.reached(following(context, call), scope):
            if operation.name == "init_process_group":
                break
            if operation.name != "backward" and context.name(operation.inner.func, operation.inner_scope).startswith(
                "torch."
            ):
                yield Hit(
                    operation.call,
                    f"`{operation.name}` is called after the process group was destroyed at line {call.lineno}",
                )
                break
    for call, scope in context.calls(INIT):
        statement = context.module.statement(call)
        block = block_of(context, call)
        before = block[: block.index(statement)] if isinstance(statement, ast.stmt) and statement in block else []
        for operation in context.collectives.reached(before, scope):
            if operation.name not in _MAKERS and context.name(operation.inner.func, operation.inner_scope).startswith(
                "torch.distributed."
            ):
                yield Hit(
                    operation.call,
                    f"`{operation.name}` is called before the process group is made at line {call.lineno}",
                )
                break
