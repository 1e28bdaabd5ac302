"""Gradients of a DeepSpeed engine are clipped by hand.

## What it does
Finds `clip_grad_norm_` on the parameters of an engine.

## Why is this bad?
The engine holds gradients in its own buffers and partitions; what is clipped is not what is applied.

## Example
```diff
 import deepspeed
 import torch

 net = torch.nn.Linear(4, 1)
 engine, optimizer, _, _ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config="ds.json")
 loss = engine(torch.randn(8, 4)).sum()
 engine.backward(loss)
-torch.nn.utils.clip_grad_norm_(engine.parameters(), 1.0)
 engine.step()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import ENGINE
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LDS004",
    symptom="perf.unexpected-intermediate-result",
    cause="gradients-clipped-past-the-library",
    pattern="fix-distributed-api-usage",
    do="Set `gradient_clipping` in DeepSpeed's configuration.",
    needs=("deepspeed",),
)


def check(context: Context) -> Iterator[Hit]:
    """Parameters that belong to an engine."""
    for call, scope in context.calls("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_"):
        first = call.args[0] if call.args else None
        node = first.func.value if isinstance(first, ast.Call) and isinstance(first.func, ast.Attribute) else first
        node = node.value if isinstance(node, ast.Attribute) and node.attr == "module" else node
        if isinstance(node, ast.expr) and context.is_a(node, scope, ENGINE):
            yield Hit(call, "Gradients are clipped outside of the engine, which keeps its own")
