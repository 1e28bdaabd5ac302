"""`prepare_data` sets attributes.

## What it does
Finds assignments to `self` in `prepare_data` of Lightning modules and data modules.

## Why is this bad?
Lightning calls `prepare_data` on one process of each host only; on the others the attribute does not exist.

## Example
```diff
 import lightning as L


 class Data(L.LightningDataModule):
-    def prepare_data(self):
+    def setup(self, stage):
         self.names = ["a", "b"]

     def train_dataloader(self):
         return self.names
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.trainers import module_classes

RULE = Rule(
    code="LLI002",
    symptom="fail.attribute-not-found",
    cause="state-set-on-one-rank",
    pattern="fix-behavior-logic",
    do="Only download in `prepare_data`; set attributes in `setup`, which every process runs.",
    needs=("prepare_data",),
)


def check(context: Context) -> Iterator[Hit]:
    """Fields that only `prepare_data` sets and other methods read."""
    for owner in module_classes(context):
        for name, found in context.module.self_fields.get(owner.node, {}).items():
            setters = {getattr(scope.node, "name", "") for _, scope in found}
            reads = [
                n
                for n in ast.walk(owner.node)
                if isinstance(n, ast.Attribute)
                and n.attr == name
                and isinstance(n.ctx, ast.Load)
                and getattr(n.value, "id", "") == "self"
            ]
            others = [n for n in reads if getattr(_function(n, context), "name", "") != "prepare_data"]
            if setters == {"prepare_data"} and others:
                yield Hit(found[0][0].node, f"`self.{name}` is set in `prepare_data`, which most processes never run")


def _function(node: ast.AST, context: Context) -> ast.AST | None:
    return next((p for p, _ in context.module.ancestors(node) if isinstance(p, ast.FunctionDef)), None)
