"""A fixed rank for every process.

## What it does
Finds `init_process_group` with a literal `rank` and a world of more than one, or with LOCAL_RANK as the rank of a job
over WORLD_SIZE.

## Why is this bad?
Two processes claim the same rank and the others never appear: the group is not formed and everybody waits until the
time-out.

## Example
```diff
+import os
+
 import torch.distributed as dist

+rank = int(os.environ["RANK"])
-dist.init_process_group("gloo", init_method="tcp://10.0.0.1:29500", rank=0, world_size=4)
+dist.init_process_group("gloo", init_method="tcp://10.0.0.1:29500", rank=rank, world_size=4)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT075",
    symptom="comm.setup-failure",
    cause="rank-taken-twice",
    pattern="fix-communication-configuration",
    do="Pass the rank of this process: RANK of torchrun, SLURM_PROCID, or leave `rank` and `world_size` out.",
    needs=("init_process_group",),
)


def check(context: Context) -> Iterator[Hit]:
    """Arguments of init_process_group."""
    for call, scope in context.calls(INIT):
        rank, size = argument(call, 4, "rank"), argument(call, 3, "world_size")
        if rank is None or size is None:
            continue
        number, count = context.constant(rank, scope), context.constant(size, scope)
        if (
            isinstance(rank, ast.Constant)
            and isinstance(number, int)
            and (not isinstance(count, int) or count > 1)
            and number >= 0
        ):
            if isinstance(count, int) or "environ" in ast.unparse(size):
                yield Hit(call, f"Every process says that it is rank {number}")
        elif "LOCAL_RANK" in _source(rank, context, scope) and "WORLD_SIZE" in _source(size, context, scope):
            yield Hit(
                call, "The rank is LOCAL_RANK, but the world is the whole job: with two hosts ranks are taken twice"
            )


def _source(node: ast.expr, context: Context, scope: Scope) -> str:
    return "".join(ast.unparse(made) for made, _ in context.origins(node, scope))
