"""Keras 3 `fit` under a multi-worker strategy.

## What it does
Finds models of the package `keras` (Keras 3) that are fitted in programs with MultiWorkerMirroredStrategy or
ParameterServerStrategy.

## Why is this bad?
Keras 3 does not support these strategies: values that are PerReplica reach code that does not know them.

## Example
```diff
-import keras
 import tensorflow as tf
+import tf_keras

 strategy = tf.distribute.MultiWorkerMirroredStrategy()
 with strategy.scope():
-    model = keras.Sequential([keras.layers.Dense(1)])
+    model = tf_keras.Sequential([tf_keras.layers.Dense(1)])
     model.compile(optimizer="sgd", loss="mse")
 model.fit(tf.zeros((8, 1)), tf.zeros((8, 1)))
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LKR001",
    symptom="fail.graph-execution-error",
    cause="strategy-not-supported-by-keras",
    pattern="fix-framework-version",
    do="Write the loop yourself with `strategy.run`, or use `tf_keras` (with TF_USE_LEGACY_KERAS=1 for `tf.keras`).",
    needs=("keras",),
)

_STRATEGIES = ("tensorflow.distribute.MultiWorkerMirroredStrategy", "tensorflow.distribute.ParameterServerStrategy")


def check(context: Context) -> Iterator[Hit]:
    """`import keras` itself; `tf.keras` may be the old one."""
    imported = {
        b.target.partition(".")[0]
        for found in context.module.scope.bindings.values()
        for b in found
        if b.kind == "import"
    }
    if "keras" not in imported or not context.calls_in_program(*_STRATEGIES) or context.mentions("TF_USE_LEGACY_KERAS"):
        return
    for call, scope in context.methods("fit"):
        values = context.values(getattr(call.func, "value", None), scope)
        if any(value.type in ("keras.Sequential", "keras.Model") for value in values):
            yield Hit(call, "Keras 3 does not support `fit` under this strategy")
