"""Two patterns of a layout map fit the same variable.

## What it does
Finds LayoutMap keys of which one, read as an expression, matches the other.

## Why is this bad?
Keras refuses a variable that two patterns match.

## Example
```diff
 import keras

 mesh = keras.distribution.DeviceMesh((1, 2), ("batch", "model"), keras.distribution.list_devices())
 layout = keras.distribution.LayoutMap(mesh)
-layout[".*kernel"] = (None, None)
 layout[".*hidden/kernel"] = (None, "model")
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LKR003",
    symptom="prep.device-error",
    cause="ambiguous-layout",
    pattern="fix-scope-assignment",
    do="Make the patterns exclude each other.",
    needs=("LayoutMap",),
)


def check(context: Context) -> Iterator[Hit]:
    """Assignments with literal keys to one layout map."""
    seen: dict[str, list[str]] = {}
    for node, scope in context.module.nodes[ast.Assign]:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(target, ast.Subscript) or not context.is_a(
            target.value, scope, "keras.distribution.LayoutMap"
        ):
            continue
        key = context.constant(target.slice, scope)
        if not isinstance(key, str):
            continue
        for other in seen.get(ast.unparse(target.value), []):
            if _fits(key, other) or _fits(other, key):
                yield Hit(node, f"The patterns `{other}` and `{key}` fit the same variables")
        seen.setdefault(ast.unparse(target.value), []).append(key)


def _fits(pattern: str, other: str) -> bool:
    try:
        return re.search(pattern, re.sub(r"[.][*+]|[\\^$]", "x", other)) is not None
    except re.error:
        return False
