"""The script overwrites the address that its launcher set.

## What it does
Finds assignments of a fixed MASTER_ADDR in scripts that take RANK or LOCAL_RANK from a launcher.

## Why is this bad?
On one host it works by chance; on two every host waits at its own localhost for ranks that never come.

## Example
```diff
 import os

 import torch.distributed as dist

-os.environ["MASTER_ADDR"] = "localhost"
+os.environ.setdefault("MASTER_ADDR", "localhost")
 dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT076",
    symptom="comm.hang-timeout",
    cause="launcher-address-overwritten",
    pattern="fix-communication-configuration",
    do="Leave MASTER_ADDR to the launcher, or use `os.environ.setdefault`.",
    needs=("MASTER_ADDR",),
)


def check(context: Context) -> Iterator[Hit]:
    """Literal addresses of this host."""
    if context.calls_in_program("torch.multiprocessing.spawn") or context.mentions("Process(", "spawn(", "launch("):
        return
    if not context.mentions('environ["RANK"]', "environ['RANK']", 'environ["LOCAL_RANK"]', "environ['LOCAL_RANK']"):
        return
    for node, scope in context.module.nodes[ast.Assign]:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if (
            not isinstance(target, ast.Subscript)
            or context.name(target.value, scope) != "os.environ"
            or not isinstance(node, ast.Assign)
        ):
            continue
        is_address = context.constant(target.slice, scope) == "MASTER_ADDR"
        if (
            is_address
            and context.constant(node.value, scope) in ("localhost", "127.0.0.1")
            and not any(context.within(node, ast.If))
        ):
            yield Hit(node, "This overwrites the MASTER_ADDR of the launcher: a job on two hosts never meets")
