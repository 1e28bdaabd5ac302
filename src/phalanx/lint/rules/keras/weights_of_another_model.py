"""Weights are saved from a wrapper and loaded into the bare model.

## What it does
Finds `save_weights` and `load_weights` of one path on models that were built by different constructors.

## Why is this bad?
The files hold the layers of the model that was saved; a model of another structure does not find its own.

## Example
```diff
 import keras


 class Wrapper(keras.Model):
     def __init__(self, inner):
         super().__init__()
         self.inner = inner

     def call(self, x):
         return self.inner(x)


 wrapped = Wrapper(keras.Sequential([keras.layers.Dense(1)]))
-wrapped.save_weights("best.weights.h5")
+wrapped.inner.save_weights("best.weights.h5")
 single = keras.Sequential([keras.layers.Dense(1)])
 single.load_weights("best.weights.h5")
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LKR004",
    symptom="fail.checkpoint-unusable",
    cause="wrapped-model-saved",
    pattern="save-single-device-weights-only",
    do="Save the inner model's weights, or load into a model of the same structure.",
    needs=("save_weights",),
)


def check(context: Context) -> Iterator[Hit]:
    """Pairs of calls with the same literal path."""
    loads = [(c, s) for c, s in context.methods("load_weights") if c.args]
    for save, scope in context.methods("save_weights"):
        path = context.constant(save.args[0], scope) if save.args else None
        own = {value.type for value in context.values(getattr(save.func, "value", None), scope)}
        for load, where in loads if isinstance(path, str) else ():
            other = {value.type for value in context.values(getattr(load.func, "value", None), where)}
            if context.constant(load.args[0], where) == path and own and other and not own & other:
                yield Hit(
                    save,
                    f"`{path}` is saved from a {own.pop().rpartition('.')[2]} and loaded into a {other.pop().rpartition('.')[2]}",
                )
                break
