"""`mp.spawn` gets a function that cannot be pickled.

## What it does
Finds lambdas and functions defined inside of other functions that are handed to `mp.spawn`.

## Why is this bad?
The function is pickled by its name; what is not at the top level of a module cannot be found again: `Can't pickle
local object`.

## Example
```diff
 import torch.multiprocessing as mp

+
+def worker(rank):
+    print(rank)
+
+
 if __name__ == "__main__":
-    mp.spawn(lambda rank: print(rank), nprocs=2)
+    mp.spawn(worker, nprocs=2)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import returns
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT071",
    symptom="prep.other",
    cause="unpicklable-worker",
    pattern="fix-behavior-logic",
    do="Define the function at the top level of the module.",
    needs=("spawn",),
)


def check(context: Context) -> Iterator[Hit]:
    """The first argument, or what a function of the project returns for it."""
    for call, scope in context.calls("torch.multiprocessing.spawn"):
        given = call.args[0] if call.args else keyword(call, "fn")
        if given is not None and any(_is_local(made, context, at) for made, at in context.origins(given, scope)):
            yield Hit(call, f"`{context.text(given)}` is defined inside of a function and cannot be pickled")


def _is_local(node: ast.expr, context: Context, scope: Scope) -> bool:
    if isinstance(node, ast.Lambda):
        return True
    function = context.inference.symbol(node.func if isinstance(node, ast.Call) else node, scope)
    if function is None or not function.is_function:
        return False
    if isinstance(node, ast.Call):
        return any(
            isinstance(result, (ast.Name, ast.Lambda)) and _is_local(result, context, function)
            for result in returns(function)
        )
    return function.parent is not None and function.parent.is_function
