"""An asynchronous operation whose handle is dropped.

## What it does
Finds `async_op=True`, `isend` and `irecv` calls whose result is thrown away.

## Why is this bad?
Nothing waits for the operation: the tensor is read or changed while it is still being sent or received, and values
are wrong now and then.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
loss = torch.zeros(1)
dist.all_reduce(loss, async_op=True)
print(loss.item())
dist.destroy_process_group()
```
Use instead:
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
loss = torch.zeros(1)
work = dist.all_reduce(loss, async_op=True)
work.wait()
print(loss.item())
dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.collectives import COLLECTIVES
from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT011",
    symptom="perf.unexpected-intermediate-result",
    cause="asynchronous-result-not-awaited",
    pattern="fix-distributed-api-usage",
    why="Nothing waits for the operation: the tensor is read or changed while it is still being sent or received, and values are wrong now and then.",
    do="Keep the handle and call `wait()` before the tensor is used.",
    needs=("async_op", "isend", "irecv"),
)


def check(context: Context) -> Iterator[Hit]:
    """Calls that are statements of their own."""
    for call, scope in context.module.calls:
        if not isinstance(context.module.parents[call][0], ast.Expr):
            continue
        name = context.name(call.func, scope)
        is_async = context.constant(keyword(call, "async_op"), scope) is True and name in COLLECTIVES
        if is_async or name in ("torch.distributed.isend", "torch.distributed.irecv"):
            yield Hit(call, f"Nothing waits for `{context.text(call.func)}`")
