"""A collective operation that only some ranks reach.

## What it does
Finds collectives (all-reduce, barrier, broadcast, the gathering of a sharded model's state, …) that run under a condition
on the rank, also through functions of the project, and ranks that leave by `return`, `continue`, `break` or `sys.exit()`
before a collective that the others make.

## Why is this bad?
Every rank of a group must make the same collectives in the same order. Ranks that call one alone wait for the others until
the time-out, or are answered by the others' next collective and get wrong data.

## Example
```diff
 import torch
 import torch.distributed as dist

 dist.init_process_group("gloo")
 rank = dist.get_rank()
 state = torch.zeros(1)
 if rank == 0:
     torch.save(state, "state.pt")
-    dist.barrier()
+dist.barrier()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.divergence import Divergence
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LCM001",
    symptom="perf.hang",
    cause="rank-conditional-collective",
    pattern="fix-behavior-logic",
    why="Every rank of a group must make the same collectives; the ranks that are alone in one wait for the others.",
    do="Call it on every rank, outside of the rank condition; keep only what one rank does (printing, writing) inside.",
)
_NEW_GROUP = frozenset({"new_group", "new_subgroups", "new_subgroups_by_enumeration"})


def check(context: Context) -> Iterator[Hit]:
    """Divergences where one side makes a collective and the other does not."""
    for found in context.divergences:
        if found.kind == "missing" and found.operation.name not in _NEW_GROUP and not _is_of_some(found):
            yield hit_of(found, context)


def _is_of_some(found: Divergence) -> bool:
    """A group that is made with an explicit size may be meant for these ranks only, as in programs with RPC."""
    given = [item.arg for item in found.operation.inner.keywords]
    return found.operation.name == "init_process_group" and "world_size" in given


def hit_of(found: Divergence, context: Context) -> Hit:
    """The message names the operation, the condition, and the way there."""
    operation = found.operation
    line = getattr(found.test, "lineno", 0)
    also = [(context.module.file, line, context.module.line(line))]
    through = ""
    if operation.is_indirect:
        inner = operation.inner_scope.module
        also.append((inner.file, operation.inner.lineno, inner.line(operation.inner.lineno)))
        through = f", through `{context.text(operation.call.func)}()`"
    if found.leaves == "while":
        return Hit(
            found.node, f"The loop with `{operation.name}` ends by the rank: `{context.text(found.test)}`{through}"
        )
    if found.leaves:
        what = (
            f"Ranks that `{found.leaves}` at line {getattr(found.node, 'lineno', line)} never reach `{operation.name}`"
        )
        return Hit(operation.call, what + f", which the others call{through}", also=tuple(also))
    return Hit(
        operation.call,
        f"`{operation.name}` runs only on ranks where `{context.text(found.test)}`{through}",
        also=tuple(also),
    )
