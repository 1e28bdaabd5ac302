"""A rank sends to itself.

## What it does
Finds `send` and `recv` whose partner is this rank.

## Why is this bad?
The call waits for its own other half, which comes later, or is refused.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
dist.send(torch.zeros(1), dst=dist.get_rank())
dist.destroy_process_group()
```
Use instead:
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
dist.send(torch.zeros(1), dst=(dist.get_rank() + 1) % dist.get_world_size())
dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument

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
