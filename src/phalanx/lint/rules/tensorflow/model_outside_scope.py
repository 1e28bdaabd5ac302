"""A model is built outside of the scope that it is trained in.

## What it does
Finds Keras models and `tf.Variable`s made outside of `strategy.scope()`, although the same file has a scope for a
multi-device strategy in which the model is compiled, or none at all before `fit`.

## Why is this bad?
Variables that are created outside of the scope live on one device only and are not mirrored; compiling or training
then fails, or only one replica is used.

## Example
```python
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
with strategy.scope():
    model.compile(optimizer="sgd", loss="mse")
```
Use instead:
```python
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import Value
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.strategies import MODELS, in_scope, multi_device
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LTF001",
    symptom="fail.graph-execution-error",
    cause="variables-outside-strategy-scope",
    pattern="fix-scope-assignment",
    why="Variables that are created outside of the scope live on one device only and are not mirrored; compiling or training then fails, or only one replica is used.",
    do="Build the model, its optimizer and its metrics inside of `with strategy.scope():`.",
    needs=("scope",),
)


def check(context: Context) -> Iterator[Hit]:
    """Models that are compiled or fitted in a file with a strategy, made outside of every scope."""
    if not multi_device(context):
        return
    seen = set()
    for call, scope in context.methods("compile", "fit"):
        if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
            continue
        for value in context.values(call.func.value, scope):
            made = value.node
            is_model = (
                value.type in MODELS or value.type.startswith("keras.applications.") or _is_keras_class(value, context)
            )
            if (
                is_model
                and value.scope is scope
                and made not in seen
                and not in_scope(made, context)
                and _has_scope(context, scope)
            ):
                seen.add(made)
                yield Hit(made, f"`{context.text(call.func.value)}` is built outside of the strategy's scope")


def _has_scope(context: Context, scope: Scope) -> bool:
    """The function itself opens a scope: one that is handed a model does not build it."""
    return any(where is scope for _, where in context.methods("scope"))


def _is_keras_class(value: Value, context: Context) -> bool:
    call = value.node
    owner = context.inference.symbol(call.func, value.scope) if isinstance(call, ast.Call) else None
    return owner is not None and "keras.Model" in context.inference.bases(owner)
