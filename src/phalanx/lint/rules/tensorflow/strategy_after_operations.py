"""The multi-worker strategy is made after TensorFlow has already started.

## What it does
Finds TensorFlow operations (tensors, variables, models) before `MultiWorkerMirroredStrategy()` in the same block.

## Why is this bad?
Collective operations must be configured before the first operation runs: `Collective ops must be configured at
program startup`.

## Example
```diff
 import tensorflow as tf

+strategy = tf.distribute.MultiWorkerMirroredStrategy()
 zero = tf.constant(0.0)
-strategy = tf.distribute.MultiWorkerMirroredStrategy()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.collectives import calls_in
from phalanx.lint.context import Context
from phalanx.lint.flow import sites
from phalanx.lint.patterns import block_of, calls_below
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LTF002",
    symptom="comm.setup-failure",
    cause="strategy-created-late",
    pattern="fix-scope-assignment",
    do="Create the strategy first, right after the imports and TF_CONFIG.",
    needs=("MultiWorkerMirroredStrategy",),
)

_EAGER = ("tensorflow.constant", "tensorflow.Variable", "tensorflow.zeros", "tensorflow.ones", "tensorflow.random.", "tensorflow.convert_to_tensor", "tensorflow.data.Dataset.from_tensor_slices", "tensorflow.reduce_", "tensorflow.matmul", "tensorflow.cast", "tensorflow.range")  # fmt: skip


def check(context: Context) -> Iterator[Hit]:
    """Statements of the block before the strategy; functions that are only defined do not run."""
    for call, scope in sites(context, "tensorflow.distribute.MultiWorkerMirroredStrategy"):
        statement = context.module.statement(call)
        block = block_of(context, call)
        before = block[: block.index(statement)] if isinstance(statement, ast.stmt) and statement in block else []
        for item in (c for node in before for c in calls_in(node)):
            if any(name.startswith(_EAGER) and "set_seed" not in name for name in _reached(item, context, scope)):
                yield Hit(call, f"The strategy is made after `{context.text(item.func)}` ran at line {item.lineno}")
                break


def _reached(call: ast.Call, context: Context, scope: Scope) -> list[str]:
    """What a call runs: itself, or what a function of the project calls."""
    function = context.inference.symbol(call.func, scope)
    if function is None or not function.is_function:
        return [context.name(call.func, scope)]
    return [context.name(item.func, function) for item in calls_below(function.body)]
