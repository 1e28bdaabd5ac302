"""`strategy.scope()` is called, but not entered.

## What it does
Finds `strategy.scope()` as a statement of its own.

## Why is this bad?
The call only returns a context manager. Variables made afterwards are not mirrored, and training runs on one device.

## Example
```diff
 import tensorflow as tf

 strategy = tf.distribute.MirroredStrategy()
-strategy.scope()
+with strategy.scope():
-variable = tf.Variable(1.0)
+    variable = tf.Variable(1.0)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LTF017",
    symptom="perf.unexpected-parallelization-or-device",
    cause="variables-outside-strategy-scope",
    pattern="fix-scope-assignment",
    do="Write `with strategy.scope():`.",
    needs=("scope()",),
)


def check(context: Context) -> Iterator[Hit]:
    """Expression statements."""
    for call, scope in context.methods("scope"):
        is_strategy = "strategy" in ast.unparse(call.func).lower() or "distribute" in context.name(call.func, scope)
        if is_strategy and isinstance(context.module.parents[call][0], ast.Expr):
            yield Hit(call, "The scope is made, but not entered: it needs `with`")
