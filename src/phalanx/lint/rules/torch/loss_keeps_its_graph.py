"""A running loss that keeps every step's graph.

## What it does
Finds `total += loss` and `losses.append(loss)` in training loops, where `loss` is what `backward()` is called on.

## Why is this bad?
The sum holds the autograd graph of every step: memory grows until the device runs out of it.

## Example
```diff
 import torch

 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 total = 0.0
 for step in range(100):
     optimizer.zero_grad()
     loss = model(torch.randn(8, 4)).square().mean()
     loss.backward()
     optimizer.step()
-    total += loss
+    total += loss.item()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import following, names_in, root_name
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument_of, parameters
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT085",
    symptom="fail.memory-issue",
    cause="graph-kept-by-running-loss",
    pattern="fix-loss-function",
    do="Add up `loss.item()` or `loss.detach()`.",
    needs=("backward",),
    is_distributed=False,
)


def check(context: Context) -> Iterator[Hit]:
    """The bare name of the loss, in the loop of its backward pass."""
    for call, scope in context.methods("backward"):
        loss = call.func.value if isinstance(call.func, ast.Attribute) else None
        loops = context.loops_around(call)
        if not isinstance(loss, ast.Name) or not loops or call.args:
            continue
        for node in following(context, call):
            is_sum = (
                isinstance(node, ast.AugAssign)
                and isinstance(node.op, ast.Add)
                and getattr(node.value, "id", "") == loss.id
            )
            if (is_sum and isinstance(node, ast.AugAssign) and not _is_used(node, context, scope)) or _is_summed(
                node, loss.id, context, scope
            ):
                yield Hit(node, f"`{context.text(node)}` keeps the graph of every step")


def _is_summed(statement: ast.stmt, loss: str, context: Context, scope: Scope) -> bool:
    """`meter.update(loss)`, where the method adds what it is given to a field."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    function = context.inference.symbol(call.func, scope)
    given = [n for n in parameters(function) if getattr(argument_of(call, function, n), "id", "") == loss] if function is not None else []  # fmt: skip
    return function is not None and any(
        where is function
        and isinstance(node, ast.AugAssign)
        and isinstance(node.target, ast.Attribute)
        and getattr(node.value, "id", "") in given
        and all(binding.kind == "param" for binding in function.bindings.get(given[0], ()))
        for node, where in function.module.nodes[ast.AugAssign]
    )


def _is_used(node: ast.AugAssign, context: Context, scope: Scope) -> bool:
    """The sum itself is trained on."""
    return any(root_name(node.target) in names_in(c.func) for c, s in context.methods("backward") if s is scope)
