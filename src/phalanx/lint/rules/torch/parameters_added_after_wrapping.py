"""A layer is added or replaced after the model was wrapped.

## What it does
Finds assignments to attributes of `x.module`, `add_module` and `append` on a model that DistributedDataParallel holds
already.

## Why is this bad?
DDP registers its hooks when it is constructed. Parameters that come later are never averaged, so each rank trains its
own.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
-model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4)))
+net = torch.nn.Sequential(torch.nn.Linear(4, 4))
-model.module.head = torch.nn.Linear(4, 1)
+net.head = torch.nn.Linear(4, 1)
+model = DistributedDataParallel(net)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP
from phalanx.lint.layers import adds_layer, makes_layer
from phalanx.lint.patterns import root_name
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import parameters
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT034",
    symptom="perf.unexpected-intermediate-result",
    cause="parameters-added-after-wrapping",
    pattern="fix-model-construction",
    do="Build the whole model first, then wrap it.",
)


def check(context: Context) -> Iterator[Hit]:
    """Modules assigned into a wrapped model."""
    for node, scope in context.module.nodes[ast.Assign]:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if (
                isinstance(target, ast.Attribute)
                and isinstance(node, ast.Assign)
                and makes_layer(node.value, context, scope)
                and _is_inside(target.value, context, scope)
            ):
                yield Hit(
                    node,
                    f"`{context.text(target)}` is set after the model was wrapped; DDP never averages its gradients",
                )
    for call, scope in context.methods("add_module", "append", "register_parameter"):
        if isinstance(call.func, ast.Attribute) and _is_inside(call.func.value, context, scope):
            yield Hit(
                call,
                f"`{context.text(call.func)}` adds parameters after the model was wrapped; DDP never averages their gradients",
            )
    for call, scope in context.module.calls:
        func = call.func
        is_method = isinstance(func, ast.Attribute) and _is_inside(func.value, context, scope)
        is_method = is_method and adds_layer(context.inference.symbol(func, scope), context)
        if is_method or any(_is_inside(item, context, scope) and _changes(call, item, context, scope) for item in call.args):  # fmt: skip
            text = f"`{context.text(func)}` adds a layer after the model was wrapped; DDP never averages its gradients"
            yield Hit(call, text)


def _changes(call: ast.Call, given: ast.expr, context: Context, scope: Scope) -> bool:
    """Whether a function of the project puts a layer into the model that it is given."""
    function = context.inference.symbol(call.func, scope)
    names = parameters(function) if function is not None and function.is_function else []
    place = call.args.index(given)
    return function is not None and any(
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Attribute)
        and root_name(node.targets[0]) in names[place : place + 1]
        and makes_layer(node.value, context, where)
        for node, where in function.module.nodes[ast.Assign]
        if where is function
    )


def _is_inside(node: ast.expr, context: Context, scope: Scope) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == "module":
        return any(value.type == DDP for value in context.values(node.value, scope))
    return False
