"""A checkpoint holds objects that `torch.load` refuses.

## What it does
Finds checkpoints with an `argparse.Namespace` or a whole model in them that the same program loads with the default
`weights_only`.

## Why is this bad?
Since PyTorch 2.6 `torch.load` accepts only tensors and plain containers unless `weights_only=False`; the checkpoint
cannot be read back.

## Example
```diff
 import argparse

 import torch

 arguments = argparse.ArgumentParser().parse_args()
 model = torch.nn.Linear(4, 1)
-torch.save({"model": model.state_dict(), "args": arguments}, "model.pt")
+torch.save({"model": model.state_dict(), "args": vars(arguments)}, "model.pt")
 model.load_state_dict(torch.load("model.pt", map_location="cpu")["model"])
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Calls, Context
from phalanx.lint.patterns import has_rest, is_module, keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT051",
    symptom="fail.checkpoint-unusable",
    cause="checkpoint-holds-arbitrary-objects",
    pattern="fix-tensor-api-usage",
    do="Save plain values (`vars(args)`), or load with `weights_only=False` if you trust the file.",
    needs=("save(",),
    is_distributed=False,
)


def check(context: Context) -> Iterator[Hit]:
    """What dictionaries that are saved hold, if the program loads with the default."""
    loads = context.calls_in_program("torch.load")
    if (
        not loads
        or any(keyword(call, "weights_only") is not None or has_rest(call) for call, _ in loads)
        or context.mentions("add_safe_globals", "safe_globals")
    ):
        return
    for call, scope in context.calls("torch.save"):
        for item, where in _entries(call.args[0] if call.args else None, context, scope):
            values = context.values(item, where)
            if values and all(value.type == "argparse.Namespace" for value in values):
                yield Hit(
                    item, f"`{context.text(item)}` is an argparse.Namespace, which `torch.load` refuses by default"
                )
            elif values and all(is_module(v, context) for v in values) and _is_loaded(call, scope, loads, context):
                do = "Save `state_dict()` of the inner model (`model.module`), and load that into a model that was built anew."
                yield Hit(
                    item, f"`{context.text(item)}` is a whole model, which `torch.load` refuses by default", do=do
                )


def _is_loaded(save: ast.Call, scope: Scope, loads: Calls, context: Context) -> bool:
    """Whether some `torch.load` reads the file of a `torch.save`: by the same constant, or by the same words."""
    path = argument(save, 1, "f")
    read = [(argument(call, 0, "f"), where) for call, where in loads]
    known = context.constant(path, scope)
    return path is not None and any(
        other is not None
        and (ast.unparse(other) == ast.unparse(path) or context.constant(other, at) == known is not None)
        for other, at in read
    )


def _entries(node: ast.expr | None, context: Context, scope: Scope) -> list[tuple[ast.expr, Scope]]:
    found = context.origins(node, scope)
    whole = [(node, scope)] if node is not None else []
    return [*whole, *((value, where) for made, where in found if isinstance(made, ast.Dict) for value in made.values)]
