"""Only the chief saves the model of a multi-worker strategy.

## What it does
Finds `model.save` and `save_weights` under a condition on the worker, in programs with MultiWorkerMirroredStrategy.

## Why is this bad?
Saving reads mirrored variables, which takes part of all workers; the chief waits for the others, which went on.

## Example
```diff
 import tensorflow as tf

 strategy = tf.distribute.MultiWorkerMirroredStrategy()
 with strategy.scope():
     model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
     model.compile(optimizer="sgd", loss="mse")
-if strategy.cluster_resolver.task_id == 0:
+task = strategy.cluster_resolver.task_id
-    model.save("model.keras")
+model.save("model.keras" if task == 0 else f"/tmp/unused-{task}.keras")
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import calls_below
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LTF008",
    symptom="perf.hang",
    cause="rank-conditional-collective",
    pattern="fix-behavior-logic",
    do="Save on every worker, the chief to the real path and the others to a temporary one.",
    needs=("MultiWorkerMirroredStrategy",),
)


_SAVERS = ("keras.", "tensorflow.train.Checkpoint")


def check(context: Context) -> Iterator[Hit]:
    """Guarded saves without another one on the other side of the condition."""
    if not context.calls_in_program("tensorflow.distribute.MultiWorkerMirroredStrategy"):
        return
    for call, scope in context.methods("save", "save_weights"):
        values = context.values(getattr(call.func, "value", None), scope)
        branch = next(
            (p for p in context.within(call, ast.If) if isinstance(p, ast.If) and context.ranks.depends(p.test, scope)),
            None,
        )
        if not isinstance(branch, ast.If) or not any(v.type.startswith(_SAVERS) for v in values):
            continue
        other = branch.orelse if call in list(calls_below(branch.body)) else branch.body
        if not any(getattr(item.func, "attr", "") in ("save", "save_weights") for item in calls_below(other)):
            yield Hit(call, f"Only workers where `{context.text(branch.test)}` save, but saving needs all of them")
