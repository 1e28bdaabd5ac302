"""The engine's state is saved by `torch.save`.

## What it does
Finds `torch.save` of an engine's or its inner model's `state_dict()`.

## Why is this bad?
Under ZeRO 3 every rank holds a shard, and the file has empty tensors; the optimizer's state is missing in any case.

## Example
```diff
 import deepspeed
 import torch

 net = torch.nn.Linear(4, 1)
 engine, optimizer, _, _ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config="ds.json")
-torch.save(engine.state_dict(), "model.pt")
+engine.save_checkpoint("checkpoints")
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import ENGINE
from phalanx.lint.patterns import states_in
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LDS003",
    symptom="fail.checkpoint-unusable",
    cause="wrapped-model-saved",
    pattern="save-single-device-weights-only",
    do="Call `engine.save_checkpoint(folder)` on all ranks, or `engine.save_16bit_model`.",
    needs=("deepspeed",),
)


def check(context: Context) -> Iterator[Hit]:
    """The state of the engine itself."""
    for call, scope in context.calls("torch.save"):
        for owner in states_in(call.args[0], context, scope) if call.args else ():
            inner = owner.value if isinstance(owner, ast.Attribute) and owner.attr == "module" else owner
            if context.is_a(inner, scope, ENGINE):
                yield Hit(call, "`torch.save` of the engine's state holds a shard at most")
                break
