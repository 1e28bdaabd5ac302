"""Ranks that call different collectives, or the same ones in another order.

## What it does
Compares the collectives of both sides of a condition on the rank, also where the condition chooses the function.

## Why is this bad?
The n-th collective of a group must be the same on every rank. If one rank gathers where the others reduce, they hang,
fail, or exchange each other's data.

## Example
```diff
 import torch
 import torch.distributed as dist

 dist.init_process_group("gloo")
 loss, count = torch.zeros(1), torch.zeros(1)
-if dist.get_rank() == 0:
-    dist.all_reduce(loss)
+dist.all_reduce(loss)
-    dist.broadcast(count, src=0)
+dist.broadcast(count, src=0)
-else:
-    dist.broadcast(count, src=0)
-    dist.all_reduce(loss)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LCM002",
    symptom="fail.communication-error",
    cause="collective-operation-mismatch",
    pattern="fix-behavior-logic",
    do="Make the same calls in the same order on every rank, outside of the condition.",
)


def check(context: Context) -> Iterator[Hit]:
    """Both sides call collectives, but not the same."""
    for found in context.divergences:
        if found.kind == "order" and found.instead is not None:
            other = found.instead
            place = other.inner_scope.module
            yield Hit(
                found.operation.call,
                f"Ranks where `{context.text(found.test)}` call `{found.operation.name}` while the others call `{other.name}`",
                also=((place.file, other.inner.lineno, place.line(other.inner.lineno)),),
            )
