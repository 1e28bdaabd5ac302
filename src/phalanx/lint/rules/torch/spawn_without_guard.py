"""Processes are started at the top level of the script.

## What it does
Finds `mp.spawn` and `Process.start` outside of `if __name__ == "__main__":`.

## Why is this bad?
Each started process imports the script again, and starts processes itself: `An attempt has been made to start a new
process before the current process has finished its bootstrapping phase`.

## Example
```diff
 import torch.multiprocessing as mp


 def train(rank, size):
     print(rank, size)


+if __name__ == "__main__":
-mp.spawn(train, args=(2,), nprocs=2)
+    mp.spawn(train, args=(2,), nprocs=2)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Calls, Context
from phalanx.lint.infer import SPAWN
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT070",
    symptom="prep.other",
    cause="spawn-without-main-guard",
    pattern="fix-behavior-logic",
    do='Start them under `if __name__ == "__main__":`.',
    needs=("spawn", "forkserver"),
)


_DEPTH = 4


def check(context: Context) -> Iterator[Hit]:
    """Calls that importing the file would run, through functions of it too."""
    if context.module.source.is_notebook:
        return
    for call, scope in (*context.calls(SPAWN), *_processes(context)):
        for place in _at_import(call, scope, context, _DEPTH):
            yield Hit(place, "Processes are started whenever this file is imported, also in those that it starts")


def _processes(context: Context) -> Calls:
    """`Process(…)` where the program asks for the start method `spawn`; the default, `fork`, imports nothing again."""
    asks = [c for c, _ in context.methods_in_program("set_start_method", "get_context") if c.args]
    if not any(isinstance(c.args[0], ast.Constant) and c.args[0].value in ("spawn", "forkserver") for c in asks):
        return []
    return [*context.methods("Process"), *context.calls("multiprocessing.Process", "torch.multiprocessing.Process")]


def _at_import(call: ast.Call, scope: Scope, context: Context, depth: int) -> list[ast.Call]:
    """The unguarded calls at the top level of this file that come to a call."""
    if scope is context.module.scope:
        tests = (parent.test for parent, _ in context.module.ancestors(call) if isinstance(parent, ast.If))
        return [] if any("__name__" in ast.unparse(test) for test in tests) else [call]
    function = scope.function
    callers = context.inference.callers(function) if function is not None and depth else []
    return [i for c, s in callers if s.module is context.module for i in _at_import(c, s, context, depth - 1)]
