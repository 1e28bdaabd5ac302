"""A loss object with the default reduction in a custom loop.

## What it does
Finds Keras losses without `reduction` that a function run by `strategy.run` calls.

## Why is this bad?
Each replica would average over its own part of the batch, and summing the replicas' gradients makes them too large;
TensorFlow 2 refuses the default with ValueError, Keras 3 scales it silently.

## Example
```diff
 import tensorflow as tf

 strategy = tf.distribute.MirroredStrategy()
 with strategy.scope():
     model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
-    loss_object = tf.keras.losses.MeanSquaredError()
+    loss_object = tf.keras.losses.MeanSquaredError(reduction="none")


 def step(x, y):
     with tf.GradientTape() as tape:
-        loss = loss_object(y, model(x))
+        loss = tf.nn.compute_average_loss(loss_object(y, model(x)), global_batch_size=8)
     return tape.gradient(loss, model.trainable_variables)


 strategy.run(step, args=(tf.zeros((4, 1)), tf.zeros((4, 1))))
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
    code="LTF005",
    symptom="fail.graph-execution-error",
    cause="loss-reduction-under-strategy",
    pattern="fix-loss-function",
    do="Make it with `reduction='none'` and average over the global batch: `tf.nn.compute_average_loss(loss, global_batch_size=…)`.",
    needs=("losses",),
)


def check(context: Context) -> Iterator[Hit]:
    """Calls of loss objects within replica functions."""
    replica = replica_functions(context)
    for call, scope in context.module.calls if replica else ():
        inside = {parent for parent, _ in context.module.ancestors(call)}
        if not inside & replica or not isinstance(call.func, (ast.Name, ast.Attribute)):
            continue
        for value in context.values(call.func, scope):
            if (
                value.type.startswith("keras.losses.")
                and isinstance(value.node, ast.Call)
                and keyword(value.node, "reduction") is None
            ):
                yield Hit(
                    value.node,
                    f"`{context.text(value.node)}` has the default reduction, but runs on replicas (line {call.lineno})",
                )
                return
