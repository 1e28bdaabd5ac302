"""All workers save the model to the same path.

## What it does
Finds `model.save`, `save_weights` and `ModelCheckpoint` with a fixed path in programs with
MultiWorkerMirroredStrategy.

## Why is this bad?
All workers must save, because it is a collective, but to different paths: writing one file at once leaves it broken.

## Example
```diff
 import tensorflow as tf

 strategy = tf.distribute.MultiWorkerMirroredStrategy()
 with strategy.scope():
     model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
     model.compile(optimizer="sgd", loss="mse")
-model.save("model.keras")
+task = strategy.cluster_resolver.task_id
+model.save("model.keras" if task == 0 else f"/tmp/unused-{task}.keras")
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument

RULE = Rule(
    code="LTF007",
    symptom="fail.checkpoint-unusable",
    cause="all-ranks-write-one-file",
    pattern="fix-behavior-logic",
    do="Save on every worker, the chief to the real path and the others to a temporary one.",
    needs=("MultiWorkerMirroredStrategy",),
)


def check(context: Context) -> Iterator[Hit]:
    """Literal paths, on every worker."""
    if not context.calls_in_program("tensorflow.distribute.MultiWorkerMirroredStrategy"):
        return
    for call, scope in context.calls("tensorflow.train.CheckpointManager"):
        folder = argument(call, 1, "directory")
        if isinstance(context.constant(folder, scope), str) and context.guard(call, scope) is None:
            yield Hit(call, f"All workers write checkpoints to `{context.text(folder or call)}`")
    for call, scope in (
        *context.methods("save", "save_weights", "export"),
        *context.calls("keras.callbacks.ModelCheckpoint"),
    ):
        path = call.args[0] if call.args else keyword(call, "filepath")
        is_model = context.name(call.func, scope).startswith("keras.") or any(
            v.type.startswith("keras.") for v in context.values(getattr(call.func, "value", None), scope)
        )
        if is_model and isinstance(context.constant(path, scope), str) and context.guard(call, scope) is None:
            yield Hit(call, f"All workers write `{context.text(path or call)}`")
