"""A data set function batches by the global size.

## What it does
Finds functions given to `distribute_datasets_from_function` that batch by a constant without asking the input context
for the replica's share.

## Why is this bad?
The function makes each replica's own input, and nothing divides it: the global batch is n times as large as meant.

## Example
```diff
 import tensorflow as tf

 GLOBAL_BATCH = 64
 strategy = tf.distribute.MirroredStrategy()


 def make(context):
-    return tf.data.Dataset.range(1024).batch(GLOBAL_BATCH)
+    return tf.data.Dataset.range(1024).batch(context.get_per_replica_batch_size(GLOBAL_BATCH))


 data = strategy.distribute_datasets_from_function(make)
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
    code="LTF012",
    symptom="perf.unexpected-intermediate-result",
    cause="global-batch-used-per-replica",
    pattern="fix-batch-size-or-data-partition",
    do="Use `context.get_per_replica_batch_size(GLOBAL_BATCH)`.",
    needs=("datasets_from_function",),
)


def check(context: Context) -> Iterator[Hit]:
    """Functions of the project whose batch size is called global."""
    for call, scope in context.methods(
        "distribute_datasets_from_function", "experimental_distribute_datasets_from_function"
    ):
        function = context.inference.symbol(call.args[0], scope) if call.args else None
        if function is None or not function.is_function or function.module is not context.module:
            continue
        for item in calls_below(function.body):
            size = item.args[0] if item.args and getattr(item.func, "attr", "") == "batch" else None
            if size is not None and _is_global(size, context, function):
                yield Hit(item, f"`{context.text(size)}` is used for each replica's own input")


def _is_global(size: ast.expr, context: Context, scope: Scope) -> bool:
    """A name that says so, or a product with the number of replicas."""
    name = size.attr if isinstance(size, ast.Attribute) else getattr(size, "id", "")
    return "global" in name.lower() or any(
        isinstance(made, ast.BinOp) and isinstance(made.op, ast.Mult) and "num_replicas_in_sync" in ast.unparse(made)
        for made, _ in context.origins(size, scope)
    )
