"""A loss that carries the graph of earlier steps along.

## What it does
Finds a variable that is computed from its own value of the step before and is then used for `backward()`, without
`detach()`.

## Why is this bad?
The graph of the earlier step was freed by its backward pass: `Trying to backward through the graph a second time`.

## Example
```python
import torch

model = torch.nn.Linear(4, 1)
running = torch.zeros(())
for step in range(100):
    loss = model(torch.randn(8, 4)).square().mean()
    running = 0.9 * running + loss
    running.backward()
```
Use instead:
```python
import torch

model = torch.nn.Linear(4, 1)
running = torch.zeros(())
for step in range(100):
    loss = model(torch.randn(8, 4)).square().mean()
    running = 0.9 * running.detach() + loss
    running.backward()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword, names_in
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT081",
    symptom="fail.graph-execution-error",
    cause="backward-through-freed-graph",
    pattern="fix-loss-function",
    do="Detach what is carried over: `running.detach()`.",
    needs=("backward",),
    is_distributed=False,
)


def check(context: Context) -> Iterator[Hit]:
    """The target of a backward pass that reads itself in the same loop."""
    for call, _ in context.methods("backward"):
        target = call.func.value if isinstance(call.func, ast.Attribute) else None
        loops = context.loops_around(call)
        if not isinstance(target, ast.Name) or not loops or keyword(call, "retain_graph") is not None:
            continue
        inner = [
            n
            for n in ast.walk(loops[0])
            if isinstance(n, ast.Assign) and _assigns(n, target.id) and n.lineno < call.lineno
        ]
        if len(inner) == 1 and _carries(inner[0].value, target.id) and _is_top(inner[0], loops[0], context):
            yield Hit(inner[0], f"`{target.id}` carries the graph of the step before into this backward pass")


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def _carries(node: ast.expr, name: str) -> bool:
    for item in ast.walk(node):
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr in ("detach", "item"):
            return False
    return isinstance(node, (ast.BinOp, ast.IfExp)) and name in names_in(node)


def _is_top(node: ast.stmt, loop: ast.AST, context: Context) -> bool:
    return context.module.parents[node][0] is loop
