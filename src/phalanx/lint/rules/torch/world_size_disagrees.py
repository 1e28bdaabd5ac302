"""More or fewer processes are started than the group waits for.

## What it does
Compares `nprocs` of `mp.spawn` with the `world_size` that the processes give to `init_process_group`, where both are
numbers.

## Why is this bad?
The group waits for processes that nobody starts, or refuses ranks beyond its size.

## Example
```diff
 import os

 import torch.distributed as dist
 import torch.multiprocessing as mp


 def worker(rank, size):
     os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "29500"
     dist.init_process_group("gloo", rank=rank, world_size=size)
     dist.destroy_process_group()


 if __name__ == "__main__":
-    mp.spawn(worker, args=(4,), nprocs=2)
+    mp.spawn(worker, args=(2,), nprocs=2)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument

RULE = Rule(
    code="LPT093",
    symptom="comm.hang-timeout",
    cause="world-size-disagrees",
    pattern="fix-communication-configuration",
    do="Use one number for both.",
    needs=("spawn",),
)


def check(context: Context) -> Iterator[Hit]:
    """The spawned function's own call of init_process_group."""
    for call, scope in context.calls("torch.multiprocessing.spawn"):
        count = context.constant(keyword(call, "nprocs"), scope)
        function = context.inference.symbol(call.args[0], scope) if call.args else None
        for made, where in context.calls(INIT) if function is not None and isinstance(count, int) else ():
            size = argument(made, 3, "world_size")
            if where is not function or size is None or context.guard(made, where) is not None:
                continue  # a group of some of the processes
            handed = (
                context.inference.handed(where, size.id)
                if isinstance(size, ast.Name) and where.bindings.get(size.id, [None])[0] is not None
                else []
            )
            numbers = [context.constant(given, at) for given, at in handed] or [context.constant(size, where)]
            if len(numbers) == 1 and isinstance(numbers[0], int) and numbers[0] != count:
                yield Hit(call, f"{count} processes are started, but the group waits for {numbers[0]}")
