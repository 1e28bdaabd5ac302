"""An exception in a synchronised step that one rank catches and skips.

## What it does
Finds `try` blocks around a collective or a backward pass of a wrapped model, in a loop, whose handler goes on with
the next step.

## Why is this bad?
The rank that met the exception skips collectives that the others are already in; from then on ranks are one call
apart, and the job hangs or mixes up its data.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100):
    try:
        loss = model(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    except RuntimeError:
        continue
dist.destroy_process_group()
```
Use instead:
```python
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
dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LCM008",
    symptom="perf.hang",
    cause="skipped-collective",
    pattern="fix-behavior-logic",
    why="The rank that met the exception skips collectives that the others are already in; from then on ranks are one call apart, and the job hangs or mixes up its data.",
    do="Let the exception end the rank, so that the launcher restarts the job from a checkpoint; catch only around code without collectives (reading a record).",
    needs=("except",),
)

_BROAD = ("Exception", "BaseException", "RuntimeError", "OutOfMemoryError", "ValueError")


def check(context: Context) -> Iterator[Hit]:
    """Handlers that neither raise nor leave the loop by an error."""
    for node, scope in context.module.nodes[ast.Try]:
        if not isinstance(node, ast.Try) or not context.loops_around(node):
            continue
        reached = context.collectives.reached(node.body, scope)
        for handler in node.handlers if reached else ():
            kind = ast.unparse(handler.type) if handler.type is not None else "Exception"
            if any(word in kind for word in _BROAD) and not _ends(handler, context, scope):
                yield Hit(
                    handler, f"A rank that meets `{kind}` here skips `{reached[0].name}`, which the others are in"
                )


def _ends(handler: ast.ExceptHandler, context: Context, scope: Scope) -> bool:
    for item in ast.walk(handler):
        if isinstance(item, (ast.Raise, ast.Break, ast.Return)):
            return True
        if isinstance(item, ast.Call) and context.name(item.func, scope).rpartition(".")[2] in (
            "exit",
            "_exit",
            "abort",
            "quit",
        ):
            return True
    return bool(context.collectives.reached(handler.body, scope))
