"""A loss that carries the graph of earlier steps along.

## What it does
Finds a variable that is computed from its own value of the step before and is then used for `backward()`, without
`detach()`.

## Why is this bad?
The graph of the earlier step was freed by its backward pass: `Trying to backward through the graph a second time`.

## Example
```diff
 import torch

 model = torch.nn.Linear(4, 1)
 running = torch.zeros(())
 for step in range(100):
     loss = model(torch.randn(8, 4)).square().mean()
-    running = 0.9 * running + loss
+    running = 0.9 * running.detach() + loss
     running.backward()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import is_module, is_without_gradients, keyword, names_in
from phalanx.lint.resolve import Value
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
    yield from _states(context)


def _states(context: Context) -> Iterator[Hit]:
    """`out, state = model(x, state)` in each step: the state's graph is that of the step before."""
    for node, scope in context.module.nodes[ast.Assign]:
        call = node.value if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not isinstance(call, ast.Call) or is_without_gradients(context, node):
            continue
        given = {ast.unparse(item) for item in call.args if isinstance(item, (ast.Name, ast.Attribute))}
        targets = [t for one in node.targets for t in getattr(one, "elts", [one])]
        state = next((t for t in targets if ast.unparse(t) in given), None)
        models = context.values(call.func, scope) if state is not None else ()
        if state is None or not models or not all(is_module(value, context) for value in models):
            continue
        owner = context.inference.owner_of(scope)
        is_field = getattr(getattr(state, "value", None), "id", "") == "self"
        loops = context.loops_around(node)
        region = owner.node if is_field and owner is not None else loops[0] if loops else None
        is_step = (
            context.trains(scope.body, scope) if is_field else bool(loops) and context.trains(loops[0].body, scope)
        )
        if region is not None and is_step and _is_kept(state, node, region) and not _lets_go(models, region, context):
            text = (
                f"`{ast.unparse(state)}` comes from the step before with its graph, which that backward pass has freed"
            )
            yield Hit(node, text)


def _is_kept(state: ast.expr, node: ast.Assign, region: ast.AST) -> bool:
    """Whether nothing else in the loop or class, but what makes the object, gives the state a value."""
    name, rest = ast.unparse(state), [region]
    while rest:
        item = rest.pop()
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            continue
        if isinstance(item, ast.Assign) and item is not node:
            stored = [t for one in item.targets for t in getattr(one, "elts", [one])]
            if any(ast.unparse(target) == name for target in stored):
                return False
        rest += ast.iter_child_nodes(item)
    return True


def _lets_go(models: tuple[Value, ...], region: ast.AST, context: Context) -> bool:
    """Whether the loop, or the model itself, detaches something, or keeps graphs on purpose."""
    made = [
        context.inference.symbol(v.node.func, v.scope)
        for m in models
        for v in (m, *context.inference.inner(m))
        if isinstance(v.node, ast.Call)
    ]
    texts = [ast.unparse(node) for node in (region, *(owner.node for owner in made if owner is not None))]
    return any(word in text for text in texts for word in ("detach", "retain_graph", ".data", "no_grad"))


def _assigns(node: ast.Assign, name: str) -> bool:
    stored = (item for target in node.targets for item in ast.walk(target))  # also `loss, count = …`
    return any(isinstance(item, ast.Name) and item.id == name for item in stored)


def _carries(node: ast.expr, name: str) -> bool:
    for item in ast.walk(node):
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr in ("detach", "item"):
            return False
    return isinstance(node, (ast.BinOp, ast.IfExp)) and name in names_in(node)


def _is_top(node: ast.stmt, loop: ast.AST, context: Context) -> bool:
    return context.module.parents[node][0] is loop
