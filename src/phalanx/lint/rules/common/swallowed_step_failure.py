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
from phalanx.lint.patterns import calls_below, following
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LCM008",
    symptom="perf.hang",
    cause="skipped-collective",
    pattern="fix-behavior-logic",
    do="Let the exception end the rank, so that the launcher restarts the job from a checkpoint; catch only around code without collectives (reading a record).",
    needs=("except",),
)

_AGREES = frozenset({"all_reduce", "allreduce", "all_gather_object", "broadcast_object_list"})
_EXITS = frozenset({"exit", "_exit", "abort", "quit"})
_BROAD = ("Exception", "BaseException", "RuntimeError", "OutOfMemoryError", "ValueError")


def check(context: Context) -> Iterator[Hit]:
    """Handlers that neither raise nor leave the loop by an error."""
    for node, scope in context.module.nodes[ast.Try]:
        if not isinstance(node, ast.Try) or not context.loops_around(node):
            continue
        reached = [] if _agrees_after(node, context) else context.collectives.reached(node.body, scope)
        for handler in node.handlers if reached else ():
            kind = ast.unparse(handler.type) if handler.type is not None else "Exception"
            if any(word in kind for word in _BROAD) and not _ends(handler, context, scope):
                yield Hit(
                    handler, f"A rank that meets `{kind}` here skips `{reached[0].name}`, which the others are in"
                )


def _ends(handler: ast.ExceptHandler, context: Context, scope: Scope) -> bool:
    """Whether no path through the handler goes on with the next step, or the handler itself synchronises."""
    return not _goes_on(handler.body, context, scope) or bool(context.collectives.reached(handler.body, scope))


def _agrees_after(node: ast.Try, context: Context) -> bool:
    """Whether ranks tell each other after the block that one of them failed."""
    return any(getattr(call.func, "attr", "") in _AGREES for call in calls_below(following(context, node)))


def _goes_on(block: list[ast.stmt], context: Context, scope: Scope) -> bool:
    """Whether a path reaches the end of a block, or `continue`."""
    for statement in block:
        if isinstance(statement, ast.Continue):
            return True
        if isinstance(statement, (ast.Raise, ast.Break, ast.Return)):
            return False
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and context.name(call.func, scope).rpartition(".")[2] in _EXITS:
            return False
        if isinstance(statement, ast.If):
            if any(isinstance(item, ast.Continue) for item in ast.walk(statement)):
                return True
            if statement.orelse and not any(_goes_on(b, context, scope) for b in (statement.body, statement.orelse)):
                return False
    return True
