"""The distribution is set after the model was built.

## What it does
Finds `keras.distribution.set_distribution` below the construction of a model in the same block.

## Why is this bad?
Variables are placed when they are created. A model that exists already stays on one device, and the step cannot use
both.

## Example
```diff
 import keras

+keras.distribution.set_distribution(keras.distribution.DataParallel())
 model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
-keras.distribution.set_distribution(keras.distribution.DataParallel())
 model.compile(optimizer="sgd", loss="mse")
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.collectives import calls_in
from phalanx.lint.context import Context
from phalanx.lint.patterns import calls_below
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LKR002",
    symptom="fail.device-error",
    cause="distribution-set-after-model",
    pattern="fix-scope-assignment",
    do="Call `set_distribution` before anything of Keras is built.",
    needs=("set_distribution",),
)


def check(context: Context) -> Iterator[Hit]:
    """The statement that sets it, itself or through a function of the project, and models above it."""
    for block_scope in (context.module.scope, *context.module.functions):
        models: list[ast.stmt] = []
        for statement in block_scope.body:
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                continue
            calls = list(calls_in(statement))
            if models and any(_sets(call, context, block_scope) for call in calls):
                yield Hit(statement, f"The distribution is set after a model was built at line {models[0].lineno}")
            if any(_builds(call, context, block_scope) for call in calls):
                models.append(statement)


def _sets(call: ast.Call, context: Context, scope: Scope) -> bool:
    return any(name == "keras.distribution.set_distribution" for name in _reached(call, context, scope))


def _builds(call: ast.Call, context: Context, scope: Scope) -> bool:
    return any(
        name in ("keras.Sequential", "keras.Model") or name.startswith("keras.applications.")
        for name in _reached(call, context, scope)
    )


def _reached(call: ast.Call, context: Context, scope: Scope) -> list[str]:
    function = context.inference.symbol(call.func, scope)
    if function is None or not function.is_function:
        return [context.name(call.func, scope)]
    return [context.name(item.func, function) for item in calls_below(function.body)]
