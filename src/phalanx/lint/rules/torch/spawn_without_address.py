"""Spawned processes have no address to meet at.

## What it does
Finds programs that start ranks by `mp.spawn` and make the group from the environment, although nothing sets
MASTER_ADDR, or the rank is not passed.

## Why is this bad?
`mp.spawn` sets no variables: init_process_group stops with `environment variable MASTER_ADDR expected, but not set`.

## Example
```diff
+import os
+
 import torch.distributed as dist
 import torch.multiprocessing as mp


 def worker(rank, world_size):
+    os.environ["MASTER_ADDR"] = "localhost"
+    os.environ["MASTER_PORT"] = "29500"
     dist.init_process_group("gloo", rank=rank, world_size=world_size)
     dist.destroy_process_group()


 if __name__ == "__main__":
     mp.spawn(worker, args=(2,), nprocs=2)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.patterns import has_rest, keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT073",
    symptom="comm.setup-failure",
    cause="rendezvous-address-missing",
    pattern="fix-communication-configuration",
    do="Set MASTER_ADDR and MASTER_PORT and pass `rank` and `world_size`, or give `init_method`; better still start the script with torchrun.",
    needs=("init_process_group",),
)


def check(context: Context) -> Iterator[Hit]:
    """Both in one program, without a word of the address."""
    if not context.calls_in_program("torch.multiprocessing.spawn") or context.is_managed:
        return
    for call, scope in context.calls(INIT):
        if argument(call, 1, "init_method") is not None or keyword(call, "store") is not None or has_rest(call):
            continue
        if not context.mentions("MASTER_ADDR", "MASTER_PORT") and not context.has_unknown_imports:
            yield Hit(call, "Nothing sets MASTER_ADDR and MASTER_PORT for the processes that `mp.spawn` starts")
        elif (
            argument(call, 4, "rank") is None
            and not context.mentions('"RANK"', "'RANK'")
            and _is_spawned(context, scope)
        ):
            yield Hit(call, "`rank` and `world_size` are not passed, and `mp.spawn` sets no variables")


def _is_spawned(context: Context, scope: Scope) -> bool:
    return scope.function is not None and context.inference.is_spawned(scope.function)
