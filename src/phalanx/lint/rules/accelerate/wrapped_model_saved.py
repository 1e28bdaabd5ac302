"""The wrapped model is saved, not the plain one.

## What it does
Finds `state_dict()` or `save_pretrained` of a prepared model without `accelerator.unwrap_model`.

## Why is this bad?
On several devices the prepared model is a wrapper: the keys begin with `module.`, and it has no `save_pretrained`.

## Example
```diff
 import torch
 from accelerate import Accelerator

 accelerator = Accelerator()
 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 model, optimizer = accelerator.prepare(model, optimizer)
-accelerator.save(model.state_dict(), "model.pt")
+accelerator.save(accelerator.unwrap_model(model).state_dict(), "model.pt")
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LAC004",
    symptom="fail.checkpoint-unusable",
    cause="wrapped-model-saved",
    pattern="save-single-device-weights-only",
    do="Save `accelerator.unwrap_model(model)`, or use `accelerator.save_model` and `accelerator.get_state_dict`.",
    needs=("ccelerat",),
)

_SAVERS = ("torch.save", "accelerate.Accelerator.save", "accelerate.utils.save")


def check(context: Context) -> Iterator[Hit]:
    """Models that surely were prepared. FSDP2 and tensor parallelism change the model in place and wrap nothing."""
    if context.mentions("ParallelismConfig", "fsdp_version=2"):
        return
    for call, scope in context.calls(*_SAVERS):
        first = call.args[0] if call.args else None
        if (
            isinstance(first, ast.Call)
            and getattr(first.func, "attr", "") == "state_dict"
            and _is_prepared(getattr(first.func, "value", None), context, scope)
        ):
            yield Hit(call, f"`{context.text(first)}` is that of the wrapped model")
    for call, scope in context.methods("save_pretrained"):
        if _is_prepared(getattr(call.func, "value", None), context, scope):
            yield Hit(call, f"`{context.text(call.func)}` is called on the wrapped model")


def _is_prepared(node: ast.expr | None, context: Context, scope: Scope) -> bool:
    values = context.values(node, scope)
    return bool(values) and all(
        "prepared" in value.tags and not value.type.startswith("torch.optim.") for value in values
    )
