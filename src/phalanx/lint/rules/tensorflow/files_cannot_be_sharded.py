"""Sharding by files of a data set that has one file or none.

## What it does
Finds `AutoShardPolicy.FILE` for data sets made from tensors, generators or a single file.

## Why is this bad?
A worker without a file has no data: TensorFlow reports too few files, or the worker waits for ever.

## Example
```diff
 import tensorflow as tf

 strategy = tf.distribute.MultiWorkerMirroredStrategy()
 options = tf.data.Options()
-options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.FILE
+options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
 data = tf.data.TextLineDataset("train.csv").batch(64).with_options(options)
 data = strategy.experimental_distribute_dataset(data)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LTF014",
    symptom="prep.data-loading-failure",
    cause="shard-too-small",
    pattern="fix-dataset-api-usage",
    do="Use `AutoShardPolicy.DATA`, or write at least one file for each worker.",
    needs=("AutoShardPolicy",),
)

_SOURCES = ("tensorflow.data.Dataset.from_tensor_slices", "tensorflow.data.Dataset.from_generator", "tensorflow.data.Dataset.range", "tensorflow.data.Dataset.from_tensors")  # fmt: skip
_FILES = ("tensorflow.data.TextLineDataset", "tensorflow.data.TFRecordDataset", "tensorflow.data.Dataset.list_files", "tensorflow.data.experimental.make_csv_dataset")  # fmt: skip


def check(context: Context) -> Iterator[Hit]:
    """The policy FILE, and every source of the file."""
    policy = next(
        (
            n
            for n, _ in context.module.nodes[ast.Attribute]
            if isinstance(n, ast.Attribute) and n.attr == "FILE" and "AutoShardPolicy" in ast.unparse(n)
        ),
        None,
    )
    if policy is None:
        return
    memory, files = context.calls(*_SOURCES), context.calls(*_FILES)
    one = all(call.args and _is_one(call.args[0], context, scope) for call, scope in files)
    if (memory or files) and (one if files else True):
        yield Hit(policy, "Sharding by files, but the data come from one file or from memory")


def _is_one(node: ast.expr, context: Context, scope: Scope) -> bool:
    made, where = context.origin(node, scope)
    if isinstance(made, (ast.List, ast.Tuple)):
        return len(made.elts) == 1 and _is_one(made.elts[0], context, where)
    value = context.constant(node, scope)
    if isinstance(value, str):
        return "*" not in value and "?" not in value
    return isinstance(node, ast.JoinedStr) and "*" not in ast.unparse(node)
