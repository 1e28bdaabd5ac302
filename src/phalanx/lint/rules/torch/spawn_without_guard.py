"""Processes are started at the top level of the script.

## What it does
Finds `mp.spawn` and `Process.start` outside of `if __name__ == "__main__":`.

## Why is this bad?
Each started process imports the script again, and starts processes itself: `An attempt has been made to start a new
process before the current process has finished its bootstrapping phase`.

## Example
```python
import torch.multiprocessing as mp


def train(rank, size):
    print(rank, size)


mp.spawn(train, args=(2,), nprocs=2)
```
Use instead:
```python
import torch.multiprocessing as mp


def train(rank, size):
    print(rank, size)


if __name__ == "__main__":
    mp.spawn(train, args=(2,), nprocs=2)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT070",
    symptom="prep.other",
    cause="spawn-without-main-guard",
    pattern="fix-behavior-logic",
    why="Each started process imports the script again, and starts processes itself: `An attempt has been made to start a new process before the current process has finished its bootstrapping phase`.",
    do='Start them under `if __name__ == "__main__":`.',
    needs=("spawn",),
)


def check(context: Context) -> Iterator[Hit]:
    """Calls that importing the file would run."""
    if context.module.source.is_notebook:
        return
    for call, scope in context.calls("torch.multiprocessing.spawn"):
        if scope is context.module.scope and not _is_guarded(call, context):
            yield Hit(call, "`spawn` runs whenever this file is imported, also in the processes that it starts")


def _is_guarded(call: ast.Call, context: Context) -> bool:
    return any(
        isinstance(parent, ast.If) and "__name__" in ast.unparse(parent.test)
        for parent, _ in context.module.ancestors(call)
    )
