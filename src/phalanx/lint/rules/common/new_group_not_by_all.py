"""`new_group` that only its members call.

## What it does
Finds `torch.distributed.new_group` under a condition on the rank.

## Why is this bad?
All ranks of the job must call `new_group`, in the same order, also those that are not members; the members wait for
the others.

## Example
```diff
 import torch.distributed as dist

 dist.init_process_group("gloo")
 members = [0, 1]
-group = dist.new_group(members) if dist.get_rank() in members else None
+group = dist.new_group(members)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import has_rest, keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import first_argument

RULE = Rule(
    code="LCM003",
    symptom="comm.hang-timeout",
    cause="new-group-not-called-by-all",
    pattern="fix-distributed-api-usage",
    do="Call `new_group` on every rank; ranks that are no members get a handle that they do not use.",
    needs=("new_group", "new_subgroups", "split_group"),
)

_CALLS = ("new_group", "new_subgroups", "new_subgroups_by_enumeration", "split_group")


def check(context: Context) -> Iterator[Hit]:
    """Divergences whose missing operation makes a group, and groups of which every rank makes only its own."""
    for call, scope in context.calls("torch.distributed.new_group"):
        ranks = first_argument(call, "ranks")
        is_local = keyword(call, "use_local_synchronization") is not None
        if ranks is not None and not is_local and not has_rest(call) and context.ranks.depends(ranks, scope):
            text = f"Each rank makes only its own group of `{context.text(ranks)}`: all ranks must make all groups, in one order"
            yield Hit(call, text)
    for found in context.divergences:
        if found.kind == "missing" and found.operation.name in _CALLS:
            yield Hit(
                found.operation.call,
                f"`{found.operation.name}` is called only on ranks where `{context.text(found.test)}`",
            )
