"""The data set is sharded by hand and by the strategy.

## What it does
Finds `.shard(…)` in data sets that a multi-worker strategy distributes while auto-sharding is on.

## Why is this bad?
Each worker keeps the n-th part of the n-th part: most of the data are never seen.

## Example
```diff
 import tensorflow as tf

 strategy = tf.distribute.MultiWorkerMirroredStrategy()
+options = tf.data.Options()
+options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
-data = tf.data.Dataset.range(1024).shard(2, 0).batch(64)
+data = tf.data.Dataset.range(1024).shard(2, 0).batch(64).with_options(options)
 data = strategy.experimental_distribute_dataset(data)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.strategies import dataset_calls

RULE = Rule(
    code="LTF013",
    symptom="perf.unexpected-intermediate-result",
    cause="data-sharded-twice",
    pattern="fix-dataset-api-usage",
    do="Leave out the `.shard(…)`, or switch auto-sharding off (`AutoShardPolicy.OFF`).",
    needs=("shard",),
)


def check(context: Context) -> Iterator[Hit]:
    """Chains with `shard` that are distributed or fitted."""
    if not context.calls_in_program("tensorflow.distribute.MultiWorkerMirroredStrategy") or context.mentions(
        "auto_shard_policy", "AutoShardPolicy"
    ):
        return
    for call, scope in context.methods("experimental_distribute_dataset", "fit"):
        for item, _ in dataset_calls(call.args[0], context, scope) if call.args else ():
            if getattr(item.func, "attr", "") == "shard":
                yield Hit(item, "This data set is sharded here and once more by the strategy")
