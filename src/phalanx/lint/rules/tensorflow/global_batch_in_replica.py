"""A replica's step reshapes to the global batch size.

## What it does
Finds `tf.reshape` to the constant that `.batch(…)` got, inside of a function that `strategy.run` runs.

## Why is this bad?
A replica gets the global batch divided by the number of replicas; the reshape fails as soon as there are two.

## Example
```diff
 import tensorflow as tf

 BATCH = 64
 strategy = tf.distribute.MirroredStrategy()
 data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(tf.zeros((256, 4))).batch(BATCH))


 def step(x):
-    return tf.reduce_sum(tf.reshape(x, (BATCH, 4)))
+    return tf.reduce_sum(tf.reshape(x, (-1, 4)))


 for x in data:
     strategy.run(step, args=(x,))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.strategies import replica_functions

RULE = Rule(
    code="LTF004",
    symptom="fail.tensor-mismatch",
    cause="global-batch-used-per-replica",
    pattern="fix-batch-size-or-data-partition",
    do="Use `-1` for the batch dimension, or `tf.shape(x)[0]`.",
    needs=("reshape",),
)


def check(context: Context) -> Iterator[Hit]:
    """Names that both `.batch(…)` and a reshape in a replica function use."""
    sizes = {
        call.args[0].id for call, _ in context.methods("batch") if call.args and isinstance(call.args[0], ast.Name)
    }
    replica = replica_functions(context)
    for call, _ in context.calls("tensorflow.reshape") if sizes and replica else ():
        shape = call.args[1] if len(call.args) > 1 else keyword(call, "shape")
        first = shape.elts[0] if isinstance(shape, (ast.Tuple, ast.List)) and shape.elts else None
        inside = {parent for parent, _ in context.module.ancestors(call)}
        if isinstance(first, ast.Name) and first.id in sizes and inside & replica:
            yield Hit(call, f"`{first.id}` is the global batch size; a replica has only its share of it")
