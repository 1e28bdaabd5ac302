"""The batch is divided by the number of replicas twice.

## What it does
Finds data sets that are batched by `batch // num_replicas_in_sync` and then given to
`experimental_distribute_dataset`, which divides them again.

## Why is this bad?
Each replica gets a fraction of what was meant: the global batch is n times too small and the learning rate no longer
fits.

## Example
```diff
 import tensorflow as tf

 strategy = tf.distribute.MirroredStrategy()
-data = tf.data.Dataset.range(64).batch(32 // strategy.num_replicas_in_sync)
+data = tf.data.Dataset.range(64).batch(32)
 data = strategy.experimental_distribute_dataset(data)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.strategies import dataset_calls
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LTF011",
    symptom="perf.unexpected-intermediate-result",
    cause="batch-divided-twice",
    pattern="fix-batch-size-or-data-partition",
    do="Batch by the global size; `experimental_distribute_dataset` and `fit` divide it.",
    needs=("num_replicas_in_sync",),
)


def check(context: Context) -> Iterator[Hit]:
    """The batch of a data set that a strategy distributes."""
    for call, scope in context.methods("experimental_distribute_dataset"):
        for item, where in dataset_calls(call.args[0], context, scope) if call.args else ():
            size = item.args[0] if item.args and getattr(item.func, "attr", "") == "batch" else None
            if size is not None and _is_share(size, context, where):
                yield Hit(
                    item, f"`{context.text(size)}` is a replica's share, which is divided by the replicas once more"
                )


def _is_share(node: ast.expr, context: Context, scope: Scope) -> bool:
    node, scope = context.origin(node, scope)
    if isinstance(node, ast.Call) and node.args:
        return context.name(node.func, scope) == "builtins.int" and _is_share(node.args[0], context, scope)
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, (ast.FloorDiv, ast.Div))
        and "num_replicas_in_sync" in ast.unparse(node.right)
    )
