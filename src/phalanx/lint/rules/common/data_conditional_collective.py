"""Ranks that stop, skip or call a collective by their own loss.

## What it does
Finds conditions on this rank's own loss or gradients that decide about a collective: under them one is called, or the
loop is left or a step skipped while the others synchronise.

## Why is this bad?
Each rank sees other data, so the condition holds on some ranks first. They leave the loop or skip the step, and the
others wait in the next all-reduce.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 model = DistributedDataParallel(torch.nn.Linear(4, 1))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for step in range(100):
     loss = model(torch.randn(8, 4)).square().mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
+    highest = loss.detach().clone()
+    dist.all_reduce(highest, op=dist.ReduceOp.MAX)
-    if loss.item() < 0.1:
+    if highest.item() < 0.1:
         break
 dist.destroy_process_group()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.divergence import divergences_at
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LCM005",
    symptom="perf.hang",
    cause="uneven-steps",
    pattern="fix-behavior-logic",
    do="Reduce the value over all ranks first (`all_reduce`), so that every rank takes the same decision.",
)

_LEAVES = frozenset({"", "continue", "break", "return", "while"})


def check(context: Context) -> Iterator[Hit]:
    """Divergences at conditions on local data; an exit with an error ends the job and is left alone."""
    if not context.module.branches:
        return
    for found in divergences_at(context.module, context.local.depends, context.collectives):
        if found.leaves in _LEAVES and not context.ranks.depends(found.test, found.scope):
            how = f"`{found.leaves}` under" if found.leaves else f"`{found.operation.name}` depends on"
            what = context.local.describe(found.test, found.scope)
            text = f"{how} `{context.text(found.test)}`, {what}: ranks reach `{found.operation.name}` unevenly"
            yield Hit(
                found.node,
                text,
                also=(
                    (
                        context.module.file,
                        found.operation.call.lineno,
                        context.module.line(found.operation.call.lineno),
                    ),
                ),
            )
