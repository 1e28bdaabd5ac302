"""A replica's mean loss is summed over the replicas.

## What it does
Finds functions run by `strategy.run` that average the loss with `tf.reduce_mean`, apply its gradients by an
optimizer, and whose results are reduced by SUM.

## Why is this bad?
Gradients of the replicas are added up, so the mean over a replica's own examples gives steps that are n times too
large.

## Example
```diff
 import tensorflow as tf

 strategy = tf.distribute.MirroredStrategy()
 with strategy.scope():
     model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
     optimizer = tf.keras.optimizers.SGD(0.1)


 def step(x, y):
     with tf.GradientTape() as tape:
-        loss = tf.reduce_mean((model(x) - y) ** 2)
+        loss = tf.nn.compute_average_loss(tf.squeeze((model(x) - y) ** 2), global_batch_size=64)
     gradients = tape.gradient(loss, model.trainable_variables)
     optimizer.apply_gradients(zip(gradients, model.trainable_variables))
     return loss


 def train(x, y):
     return strategy.reduce("SUM", strategy.run(step, args=(x, y)), axis=None)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import assigned_to, keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.strategies import replica_functions
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LTF016",
    symptom="perf.non-convergence",
    cause="loss-averaged-per-replica",
    pattern="fix-loss-function",
    do="Divide the sum of the examples' losses by the global batch size: `tf.nn.compute_average_loss`.",
    needs=("reduce_mean", "compute_average_loss"),
)


def check(context: Context) -> Iterator[Hit]:
    """Losses of replica functions, where results are summed."""
    replica = replica_functions(context)
    sums = any("SUM" in ast.unparse(call.args[0]).upper() for call, _ in context.methods("reduce") if call.args)
    if not replica or not sums:
        return
    if not any("apply_gradients" in ast.unparse(node) for node in replica):
        return
    for call, scope in context.calls("tensorflow.nn.compute_average_loss"):
        size = keyword(call, "global_batch_size")
        if size is not None and _is_share(size, context, scope):
            yield Hit(
                call,
                f"`{context.text(size)}` is the batch of one replica, not the global one: steps are n times too large",
            )
    for call, scope in context.calls("tensorflow.reduce_mean"):
        function = scope.function
        if function is None or function.node not in replica or not _is_loss(call, function, context):
            continue
        text = ast.unparse(function.node)
        if "num_replicas" not in text and "/" not in ast.unparse(context.module.statement(call)):
            yield Hit(call, "The loss is averaged over this replica's examples, and then summed over the replicas")


def _is_loss(call: ast.Call, function: Scope, context: Context) -> bool:
    """Assigned to a loss, or returned by a function that is named after it."""
    statement = context.module.statement(call)
    is_returned = isinstance(statement, ast.Return) and "loss" in getattr(function.node, "name", "").lower()
    return is_returned or any("loss" in name.lower() for name in assigned_to(context, call))


def _is_share(size: ast.expr, context: Context, scope: Scope) -> bool:
    """Whether a size is one factor of another that is multiplied by the number of replicas."""
    text = ast.unparse(size)
    return isinstance(context.origin(size, scope)[0], (ast.Constant, ast.Name)) and any(
        isinstance(item, ast.BinOp) and isinstance(item.op, ast.Mult) and text in (ast.unparse(item.left), ast.unparse(item.right)) and "num_replicas_in_sync" in ast.unparse(item)
        for item in ast.walk(context.module.tree)
    )  # fmt: skip
