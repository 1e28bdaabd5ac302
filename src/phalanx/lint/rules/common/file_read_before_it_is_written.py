"""Ranks read a file that rank 0 may not have written yet.

## What it does
Finds a file that one rank writes under a condition and that all ranks load afterwards in the same function, without a
collective in between.

## Why is this bad?
The other ranks do not wait: they find no file, an old one, or half of one.

## Example
```python
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.Linear(4, 1)
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "start.pt")
model.load_state_dict(torch.load("start.pt", map_location="cpu"))
dist.destroy_process_group()
```
Use instead:
```python
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.Linear(4, 1)
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "start.pt")
dist.barrier()
model.load_state_dict(torch.load("start.pt", map_location="cpu"))
dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LCM013",
    symptom="fail.path-error",
    cause="file-read-before-written",
    pattern="fix-behavior-logic",
    why="The other ranks do not wait: they find no file, an old one, or half of one.",
    do="Put a barrier between writing and reading, after the condition.",
    needs=("torch.load", "load("),
)


def check(context: Context) -> Iterator[Hit]:
    """Pairs of a guarded `torch.save` and an unguarded `torch.load` of the same expression."""
    if not context.is_torch_job:
        return
    loads = [
        (c, s) for c, s in context.calls("torch.load") if c.args and context.ranks.guard(c, s, callers=False) is None
    ]
    for save, scope in context.calls("torch.save"):
        path = argument(save, 1, "f")
        if path is None or context.ranks.guard(save, scope, callers=False) is None:
            continue
        for load, where in loads:
            if where is scope and load.lineno > save.lineno and ast.dump(load.args[0]) == ast.dump(path):
                yield from _between(save, load, path, context, scope)


def _between(save: ast.Call, load: ast.Call, path: ast.expr, context: Context, scope: Scope) -> Iterator[Hit]:
    inside = [c for c, s in context.module.calls if s is scope and save.lineno < c.lineno < load.lineno]
    if any(context.collectives.reached([call], scope) for call in inside):
        return
    if context.ranks.depends(path, scope):
        text = f"`{context.text(path)}` is written by some ranks only, and every rank reads its own"
    else:
        text = f"`{context.text(path)}` is written by one rank; the others read it without waiting"
    yield Hit(load, text, also=((context.module.file, save.lineno, context.module.line(save.lineno)),))
