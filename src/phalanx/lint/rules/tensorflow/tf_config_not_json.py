"""TF_CONFIG is not JSON.

## What it does
Finds dictionaries, or `str(…)` of them, assigned to TF_CONFIG, and literals that do not parse.

## Why is this bad?
TensorFlow parses TF_CONFIG as JSON. Python's own notation has single quotes and is refused; a dictionary is no
string.

## Example
```diff
+import json
 import os

 import tensorflow as tf

-os.environ["TF_CONFIG"] = str({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}})
+os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}})
 strategy = tf.distribute.MultiWorkerMirroredStrategy()
```
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LTF018",
    symptom="comm.setup-failure",
    cause="tf-config-not-json",
    pattern="fix-communication-configuration",
    do="Use `json.dumps(…)`.",
    needs=("TF_CONFIG",),
)


def check(context: Context) -> Iterator[Hit]:
    """What is assigned."""
    for node, scope in context.module.nodes[ast.Assign]:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if (
            not isinstance(target, ast.Subscript)
            or not isinstance(node, ast.Assign)
            or context.name(target.value, scope) != "os.environ"
        ):
            continue
        if context.constant(target.slice, scope) == "TF_CONFIG" and _is_wrong(node.value, context, scope):
            yield Hit(node, f"TF_CONFIG is set to `{context.text(node.value)}`, which is no JSON")


def _is_wrong(node: ast.expr, context: Context, scope: Scope) -> bool:
    node, scope = context.origin(node, scope)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            json.loads(node.value)
        except ValueError:
            return True
        return False
    is_text = isinstance(node, ast.Call) and context.name(node.func, scope) in ("builtins.str", "builtins.repr")
    return isinstance(node, ast.Dict) or is_text
