"""The default process group is made twice.

## What it does
Finds two `init_process_group` calls on one path, also one of them in a function of the project.

## Why is this bad?
The second call raises `trying to initialize the default process group twice`.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
-dist.init_process_group("gloo")
+
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import calls_below
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT002",
    symptom="comm.setup-failure",
    cause="group-initialised-twice",
    pattern="fix-distributed-api-usage",
    do="Remove one of the calls, or guard it by `if not dist.is_initialized():`.",
    needs=("init_process_group",),
)


def check(context: Context) -> Iterator[Hit]:
    """Two in one block, or in a block and in a function that it calls."""
    seen: set[ast.AST] = set()
    for scope in (context.module.scope, *context.module.functions):
        for block in _blocks(scope, context):
            first: ast.Call | None = None
            for statement in block:
                for operation in context.collectives.reached([statement], scope) if _is_plain(statement) else ():
                    if operation.name != "init_process_group" or _is_guarded(operation.inner, operation.inner_scope):
                        continue
                    if first is not None and operation.call not in seen and operation.call is not first:
                        seen.add(operation.call)
                        yield Hit(operation.call, f"The default process group was made at line {first.lineno} already")
                    first = first or operation.call
                if any(
                    context.name(c.func, scope) == "torch.distributed.destroy_process_group"
                    for c in calls_below([statement])
                ):
                    first = None


def _is_plain(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign))


def _blocks(scope: Scope, context: Context) -> list[list[ast.stmt]]:
    inner = [branch.body for branch, where in context.module.branches if where is scope]
    return [scope.body, *inner]


def _is_guarded(call: ast.Call, scope: Scope) -> bool:
    return any(
        isinstance(parent, (ast.If, ast.Try))
        and ("is_initialized" in ast.unparse(parent) or isinstance(parent, ast.Try))
        for parent, _ in scope.module.ancestors(call)
    )
