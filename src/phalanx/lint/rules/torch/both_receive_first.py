"""Every rank receives before it sends.

## What it does
Finds a blocking `recv` followed by a `send` in the same block, which all ranks run in this order.

## Why is this bad?
Each rank waits for a message that its partner sends only after its own `recv` has returned: nobody ever sends.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 peer = 1 - dist.get_rank()
 mine, theirs = torch.zeros(1), torch.zeros(1)
+sending = dist.isend(mine, dst=peer)
 dist.recv(theirs, src=peer)
-dist.send(mine, dst=peer)
+sending.wait()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import block_of, calls_below, following
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument

RULE = Rule(
    code="LPT006",
    symptom="perf.hang",
    cause="point-to-point-deadlock",
    pattern="fix-behavior-logic",
    do="Start the send first without blocking (`isend`, wait after the `recv`), use `batch_isend_irecv`, or let even ranks send first and odd ranks receive first.",
    needs=("recv",),
)


def check(context: Context) -> Iterator[Hit]:
    """Unconditional receives with a send after them and none before."""
    sends = {"torch.distributed.send", "torch.distributed.isend", "torch.distributed.batch_isend_irecv"}
    for call, scope in context.calls("torch.distributed.recv"):
        source = argument(call, 1, "src")
        if source is None or context.guard(call, scope) is not None or not context.ranks.depends(source, scope):
            continue
        if any(
            isinstance(parent, (ast.If, ast.For)) and "rank" in ast.unparse(getattr(parent, "test", parent))
            for parent in context.within(call, ast.If)
        ):
            continue
        block, later = block_of(context, call), following(context, call)
        before = [statement for statement in block if statement not in later]
        if any(context.name(c.func, scope) in sends for c in calls_below(before)):
            continue
        first = next((c for c in calls_below(later) if context.name(c.func, scope) == "torch.distributed.send"), None)
        if first is not None and context.guard(first, scope) is None:
            yield Hit(
                call,
                f"All ranks call `recv` here and `send` only afterwards (line {first.lineno}): each waits for the other",
            )
