"""An exception in a synchronised step that one rank catches and skips.

## What it does
Finds `try` blocks around a collective or a backward pass of a wrapped model, in a loop or in a function or
decorator around what a loop calls, whose handler goes on with the next step.

## Why is this bad?
The rank that met the exception skips collectives that the others are already in; from then on ranks are one call
apart, and the job hangs or mixes up its data.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 model = DistributedDataParallel(torch.nn.Linear(4, 1))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for step in range(100):
-    try:
-        loss = model(torch.randn(8, 4)).square().mean()
+    loss = model(torch.randn(8, 4)).square().mean()
-        optimizer.zero_grad()
+    optimizer.zero_grad()
-        loss.backward()
+    loss.backward()
-        optimizer.step()
+    optimizer.step()
-    except RuntimeError:
-        continue
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.collectives import Operation
from phalanx.lint.context import Context
from phalanx.lint.patterns import calls_below, following, names_in
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import parameters
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
_EXITS = frozenset({"exit", "_exit", "abort", "quit", "destroy_process_group"})
_BROAD = ("Exception", "BaseException", "RuntimeError", "OutOfMemoryError", "ValueError")


def check(context: Context) -> Iterator[Hit]:
    """Handlers that neither raise nor leave the loop by an error."""
    for node, scope in context.module.nodes[ast.Try]:
        if not isinstance(node, ast.Try) or _agrees_after(node, context):
            continue
        is_in_loop, said = bool(context.loops_around(node)), ""
        reached = context.collectives.reached(node.body, scope) if is_in_loop else []
        if not is_in_loop and scope.function is not None and not _has_loop(node):
            reached, said = _of_callers(node, scope.function, context)
        for handler in node.handlers if reached else ():
            kind = ast.unparse(handler.type) if handler.type is not None else "Exception"
            is_broad = any(word in kind or (kind in names_in(handler) and word in said) for word in _BROAD)
            if is_broad and not _ends(handler, context, scope, leaves=is_in_loop):
                yield Hit(
                    handler, f"A rank that meets `{kind}` here skips `{reached[0].name}`, which the others are in"
                )


def _has_loop(node: ast.Try) -> bool:
    return any(isinstance(item, (ast.For, ast.While)) for part in node.body for item in ast.walk(part))


def _of_callers(node: ast.Try, function: Scope, context: Context) -> tuple[list[Operation], str]:
    """The operations of a guarded step that loops call: of a helper, or of functions that a decorator guards."""
    if _is_stepped(function, context):
        return context.collectives.reached(node.body, function), ""
    called = {c.func.id for c in calls_below(node.body) if isinstance(c.func, ast.Name)}
    makers = [maker for maker in (function.parent, function.parent and function.parent.parent) if maker is not None]
    if not any(called & set(parameters(maker)) for maker in makers if maker.is_function):
        return [], ""
    for other in (scope for one in context.contexts for scope in one.module.functions):
        for decorator in getattr(other.node, "decorator_list", ()):
            named = decorator.func if isinstance(decorator, ast.Call) else decorator
            if context.inference.symbol(named, other.parent or other) in makers and _is_stepped(other, context):
                return context.collectives.reached(other.body, other), ast.unparse(decorator)
    return [], ""


def _is_stepped(function: Scope, context: Context) -> bool:
    """Whether a loop calls a function, and ranks do not tell each other there how it went."""
    calls = [(call, context.space.context(at.module)) for call, at in context.inference.callers(function)]
    return any(there.loops_around(call) for call, there in calls) and not any(
        _agrees_after(call, there) for call, there in calls
    )


def _ends(handler: ast.ExceptHandler, context: Context, scope: Scope, *, leaves: bool) -> bool:
    """Whether no path goes on with the next step (`return` does, if a caller has the loop), or the handler synchronises."""
    goes_on = _goes_on(handler.body, context, scope, leaves=leaves)
    return not goes_on or bool(context.collectives.reached(handler.body, scope))


def _agrees_after(node: ast.AST, context: Context) -> bool:
    """Whether ranks tell each other after the block that one of them failed."""
    return any(getattr(call.func, "attr", "") in _AGREES for call in calls_below(following(context, node)))


def _goes_on(block: list[ast.stmt], context: Context, scope: Scope, *, leaves: bool) -> bool:
    """Whether a path reaches the end of a block, or `continue`."""
    for statement in block:
        if isinstance(statement, ast.Continue):
            return True
        if isinstance(statement, (ast.Raise, ast.Break, ast.Return)):
            return isinstance(statement, ast.Return) and not leaves
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and context.name(call.func, scope).rpartition(".")[2] in _EXITS:
            return False
        if isinstance(statement, ast.If):
            if any(isinstance(item, ast.Continue) for item in ast.walk(statement)):
                return True
            if statement.orelse and not any(
                _goes_on(b, context, scope, leaves=leaves) for b in (statement.body, statement.orelse)
            ):
                return False
    return True
