"""A model is built outside of the scope that it is trained in.

## What it does
Finds Keras models and `tf.Variable`s made outside of `strategy.scope()`, although the same file has a scope for a
multi-device strategy in which the model is compiled, or none at all before `fit`.

## Why is this bad?
Variables that are created outside of the scope live on one device only and are not mirrored; compiling or training
then fails, or only one replica is used.

## Example
```diff
 import tensorflow as tf

 strategy = tf.distribute.MirroredStrategy()
-model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
 with strategy.scope():
+    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
     model.compile(optimizer="sgd", loss="mse")
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.resolve import Value
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.strategies import MODELS, in_scope, multi_device, replica_functions
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LTF001",
    symptom="fail.graph-execution-error",
    cause="variables-outside-strategy-scope",
    pattern="fix-scope-assignment",
    do="Build the model, its optimizer and its metrics inside of `with strategy.scope():`.",
    needs=("Strategy",),
)


def check(context: Context) -> Iterator[Hit]:
    """Models and optimizers of a function that opens a scope, or of a file that never opens one."""
    if not multi_device(context):
        return
    seen: set[ast.AST] = set()
    opened = bool(context.methods_in_program("scope"))
    for call, scope in context.methods("compile", "fit"):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        optimizer = keyword(call, "optimizer")
        for used in (owner, optimizer):
            for node in (
                _made(used, context, scope)
                if isinstance(used, (ast.Name, ast.Attribute)) and _scopes(opened, context, scope)
                else ()
            ):
                if node not in seen:
                    seen.add(node)
                    yield Hit(node, f"`{context.text(used or call)}` is made outside of the strategy's scope")
            if not opened and seen:
                return
    yield from _in_replicas(context, seen)


def _in_replicas(context: Context, seen: set[ast.AST]) -> Iterator[Hit]:
    """Variables, models and optimizers that a function run by `strategy.run` uses."""
    for function in replica_functions(context):
        inner = context.module.scopes[function]
        for node in ast.walk(function):
            if not isinstance(node, ast.Name) or node.id in inner.bindings:
                continue
            for binding, where in context.inference.reaching(node.id, node, inner):
                is_made = (
                    binding.kind == "assign"
                    and binding.value is not None
                    and binding.node not in seen
                    and not in_scope(binding.node, context)
                )
                values = (
                    context.inference.values(binding.value, where, binding.path)
                    if is_made and binding.value is not None
                    else ()
                )
                if any(_belongs(value, context) or value.type == "tensorflow.Variable" for value in values):
                    seen.add(binding.node)
                    yield Hit(binding.node, f"`{node.id}` is made outside of the strategy's scope, and replicas use it")


def _scopes(opened: bool, context: Context, scope: Scope) -> bool:
    return _has_scope(context, scope) or (
        not opened and not context.methods("run", "experimental_run_v2", "distribute_datasets_from_function")
    )


def _made(used: ast.expr, context: Context, scope: Scope) -> list[ast.AST]:
    """The statements outside of every scope that gave a model or optimizer its name."""
    if isinstance(used, ast.Attribute):
        found = [item for item in context.inference.fields(used, scope) if item[1].module is context.module]
    else:
        found = context.inference.reaching(used.id, used, scope) if isinstance(used, ast.Name) else []
    return [
        b.node
        for b, where in found
        if b.kind == "assign"
        and b.value is not None
        and (where is scope or isinstance(used, ast.Attribute))
        and not in_scope(b.node, context)
        and any(_belongs(value, context) for value in context.inference.values(b.value, where, b.path))
    ]


def _belongs(value: Value, context: Context) -> bool:
    return (
        value.type in MODELS
        or value.type.startswith(("keras.applications.", "keras.optimizers.", "keras.metrics."))
        or _is_keras_class(value, context)
    )


def _has_scope(context: Context, scope: Scope) -> bool:
    """The function itself opens a scope: one that is handed a model does not build it."""
    return any(where is scope for _, where in context.methods("scope"))


def _is_keras_class(value: Value, context: Context) -> bool:
    call = value.node
    owner = context.inference.symbol(call.func, value.scope) if isinstance(call, ast.Call) else None
    return owner is not None and "keras.Model" in context.inference.bases(owner)
