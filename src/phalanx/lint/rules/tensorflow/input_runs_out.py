"""The data set ends before the epochs do.

## What it does
Finds `fit(steps_per_epoch=…, epochs=…)` with a data set that is not repeated.

## Why is this bad?
Every epoch takes `steps_per_epoch` batches from one iterator; when it is empty training stops early with `Your input
ran out of data`.

## Example
```diff
 import tensorflow as tf

-data = tf.data.Dataset.range(64).batch(8)
+data = tf.data.Dataset.range(64).batch(8).repeat()
 model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
 model.compile(optimizer="sgd", loss="mse")
 model.fit(data, steps_per_epoch=8, epochs=4)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.strategies import dataset_chain

RULE = Rule(
    code="LTF010",
    symptom="perf.unexpected-intermediate-result",
    cause="input-exhausted",
    pattern="fix-dataset-api-usage",
    do="Add `.repeat()` to the data set, or leave `steps_per_epoch` out.",
    needs=("steps_per_epoch",),
    is_distributed=False,
)


def check(context: Context) -> Iterator[Hit]:
    """Data sets whose whole chain of methods is seen."""
    for call, scope in context.methods("fit"):
        epochs = context.constant(keyword(call, "epochs"), scope)
        if keyword(call, "steps_per_epoch") is None or not call.args or epochs == 1 or keyword(call, "epochs") is None:
            continue
        chain = dataset_chain(call.args[0], context, scope)
        if chain and "repeat" not in chain:
            yield Hit(call, "`steps_per_epoch` is given, but the data set is not repeated: it runs out")
