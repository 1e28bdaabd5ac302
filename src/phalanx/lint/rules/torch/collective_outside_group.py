"""A collective before the group exists, or after it was destroyed.

## What it does
Finds collectives that stand before `init_process_group` or after `destroy_process_group` in the same block.

## Why is this bad?
There is no default group at that point: the call raises an error, or tears the job down while other ranks still work.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 loss = torch.zeros(1)
+dist.all_reduce(loss)
 dist.destroy_process_group()
-dist.all_reduce(loss)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.collectives import calls_in
from phalanx.lint.context import INIT, Context
from phalanx.lint.flow import sites
from phalanx.lint.patterns import block_of, following
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT001",
    symptom="fail.communication-error",
    cause="group-already-destroyed",
    pattern="fix-distributed-api-usage",
    do="Move the call between `init_process_group` and `destroy_process_group`.",
    needs=("process_group",),
)

_TEARDOWN = "torch.distributed.destroy_process_group"
_QUESTIONS = frozenset({"torch.distributed.get_rank", "torch.distributed.get_world_size"})
_MAKERS = frozenset({"init_process_group"})


def check(context: Context) -> Iterator[Hit]:
    """Statements of the block that makes or destroys the group."""
    for call, scope in sites(context, _TEARDOWN):
        if call.args or call.keywords or not isinstance(context.module.statement(call), ast.Expr):
            continue
        for operation in context.collectives.reached(following(context, call), scope):
            if operation.name == "init_process_group":
                break
            if operation.name != "backward" and context.name(operation.inner.func, operation.inner_scope).startswith(
                "torch."
            ):
                yield Hit(
                    operation.call,
                    f"`{operation.name}` is called after the process group was destroyed at line {call.lineno}",
                )
                break
    for call, scope in context.calls(INIT):
        statement = context.module.statement(call)
        block = block_of(context, call)
        before = block[: block.index(statement)] if isinstance(statement, ast.stmt) and statement in block else []
        for operation in context.collectives.reached(before, scope):
            if operation.name not in _MAKERS and context.name(operation.inner.func, operation.inner_scope).startswith(
                ("torch.distributed.", "torch.nn.parallel.")
            ):
                yield Hit(
                    operation.call,
                    f"`{operation.name}` is called before the process group is made at line {call.lineno}",
                )
                break
        else:
            asked = _asks_group(before, context, scope, 3)
            if asked is not None:
                yield Hit(
                    asked,
                    f"`{context.text(asked.func)}` is called before the process group is made at line {call.lineno}",
                )


def _asks_group(nodes: list[ast.stmt], context: Context, scope: Scope, depth: int) -> ast.Call | None:
    """A question that only a process group answers, asked itself or in a function of the project."""
    for statement in nodes:
        for call in calls_in(statement):
            if context.name(call.func, scope) in _QUESTIONS and not _is_guarded(call, scope):
                return call
            function = context.inference.symbol(call.func, scope) if depth else None
            if function is None or not function.is_function or "is_initialized" in ast.unparse(function.node):
                continue
            if any(context.name(c.func, s) == INIT for c, s in function.module.calls if s is function):
                return None
            if _asks_group(function.body, context, function, depth - 1) is not None:
                return call
    return None


def _is_guarded(call: ast.Call, scope: Scope) -> bool:
    """`dist.get_rank() if dist.is_initialized() else 0`, or in a branch or `try` that expects there to be none."""
    return any(
        isinstance(parent, ast.Try) or "is_initialized" in ast.unparse(getattr(parent, "test", parent))
        for parent, _ in scope.module.ancestors(call)
        if isinstance(parent, (ast.If, ast.IfExp, ast.Try))
    )
