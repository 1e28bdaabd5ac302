"""A module without `forward`, but with a method that is nearly called so.

## What it does
Finds subclasses of torch.nn.Module whose `forward` is misspelt.

## Why is this bad?
Calling the model raises NotImplementedError: `Module is missing the required "forward" function`.

## Example
```diff
 import torch


 class Net(torch.nn.Module):
     def __init__(self):
         super().__init__()
         self.layer = torch.nn.Linear(4, 1)

-    def forwards(self, x):
+    def forward(self, x):
         return self.layer(x)
```
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT083",
    symptom="fail.not-implemented",
    cause="forward-not-defined",
    pattern="fix-model-construction",
    do="Call the method `forward`.",
    needs=("nn.Module", "Module)"),
    is_distributed=False,
)


def check(context: Context) -> Iterator[Hit]:
    """Direct subclasses."""
    for owner in context.module.classes:
        if "forward" in owner.bindings or context.inference.bases(owner) != {"torch.nn.Module"}:
            continue
        for name, bindings in owner.bindings.items():
            near = (
                len(name) > 4
                and not name.startswith("forward_")
                and difflib.SequenceMatcher(None, name.lower(), "forward").ratio() > 0.85
            )
            if bindings[0].kind == "def" and near:
                yield Hit(bindings[0].node, f"`{getattr(owner.node, 'name', '')}` has no `forward`, only `{name}`")
