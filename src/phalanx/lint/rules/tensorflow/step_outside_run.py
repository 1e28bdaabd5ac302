"""A step is called directly on a batch of a distributed data set.

## What it does
Finds loops over a distributed data set that hand the batch to a plain function or model instead of `strategy.run`.

## Why is this bad?
The batch is a PerReplica value, which operations and models do not understand.

## Example
```diff
 import tensorflow as tf

 strategy = tf.distribute.MirroredStrategy()
 data = strategy.experimental_distribute_dataset(tf.data.Dataset.range(64).batch(8))


 def step(x):
     return tf.reduce_sum(x)


 for x in data:
-    step(x)
+    strategy.run(step, args=(x,))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import assigned_to, calls_below, names_in
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.strategies import MODELS
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LTF006",
    symptom="fail.graph-execution-error",
    cause="step-outside-strategy-run",
    pattern="fix-distributed-api-usage",
    do="Call `strategy.run(step, args=(…))` and reduce its result.",
    needs=("distribute_dataset",),
)

_MAKERS = (
    "experimental_distribute_dataset",
    "distribute_datasets_from_function",
    "experimental_distribute_datasets_from_function",
)


def check(context: Context) -> Iterator[Hit]:
    """Calls in loops over a distributed data set, of functions that do not run replicas themselves."""
    for loop, scope in context.module.loops:
        batch = _batch(loop, context, scope)
        if not batch:
            continue
        for call in calls_below(loop.body):
            function = next(iter(context.inference.callees(call.func, scope)), None)
            handed = any(isinstance(item, ast.Name) and item.id in batch for item in call.args)
            is_model = any(value.type in MODELS for value in context.values(call.func, scope))
            is_plain = function is not None and function.is_function and not _runs(function)
            if handed and (is_plain or is_model):
                yield Hit(
                    call, f"`{context.text(call.func)}` gets a batch of a distributed data set without `strategy.run`"
                )
                break


def _batch(loop: ast.AST, context: Context, scope: Scope) -> set[str]:
    """Names of the batch: of a loop over the data set, or taken by `next` from its iterator."""
    if isinstance(loop, ast.For) and _is_distributed(loop.iter, context, scope):
        return names_in(loop.target)
    found: set[str] = set()
    for node in ast.walk(loop):
        call = node.value if isinstance(node, ast.Assign) else None
        is_next = isinstance(call, ast.Call) and context.name(call.func, scope) == "builtins.next"
        if is_next and isinstance(call, ast.Call) and call.args and _is_distributed(call.args[0], context, scope):
            found |= assigned_to(context, call)
    return found


def _is_distributed(node: ast.expr, context: Context, scope: Scope) -> bool:
    made, where = context.origin(node, scope)
    if not isinstance(made, ast.Call):
        return False
    if made.args and context.name(made.func, where) in ("builtins.enumerate", "builtins.iter"):
        return _is_distributed(made.args[0], context, where)
    return getattr(made.func, "attr", "") in _MAKERS


def _runs(function: Scope) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in ("run", "experimental_run_v2", "experimental_local_results", "values")
        for node in ast.walk(function.node)
    )
