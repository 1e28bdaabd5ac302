"""A send that depends on this rank's own data.

## What it does
Finds `send` under a condition on the loss or the gradients.

## Why is this bad?
The receiver does not know that nothing comes and waits in `recv` until the time-out.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 model = torch.nn.Linear(4, 1)
 loss = model(torch.randn(8, 4)).square().mean()
 loss.backward()
 if dist.get_rank() == 0:
     dist.recv(torch.zeros(1), src=1)
-elif loss.item() > 0.5:
+else:
     dist.send(loss.detach(), dst=0)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import calls_below
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT007",
    symptom="perf.hang",
    cause="receive-without-send",
    pattern="fix-behavior-logic",
    do="Send always, and send an empty or zero tensor where there is nothing to say.",
    needs=("send",),
)


def check(context: Context) -> Iterator[Hit]:
    """Sends under conditions on local data."""
    for call, scope in context.calls("torch.distributed.send", "torch.distributed.isend"):
        for parent, field in context.module.ancestors(call):
            if parent in context.module.scopes:
                break
            if isinstance(parent, ast.If) and field == "body" and context.local.depends(parent.test, scope):
                sides = [
                    c
                    for c in calls_below(parent.orelse)
                    if context.name(c.func, scope).startswith("torch.distributed.")
                ]
                if not sides:
                    yield Hit(
                        call,
                        f"This `send` happens only if `{context.text(parent.test)}`; the receiver waits in any case",
                    )
                break
