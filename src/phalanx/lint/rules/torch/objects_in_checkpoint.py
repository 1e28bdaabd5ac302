"""A checkpoint holds objects that `torch.load` refuses.

## What it does
Finds checkpoints with an `argparse.Namespace` or a whole model in them that the same program loads with the default
`weights_only`.

## Why is this bad?
Since PyTorch 2.6 `torch.load` accepts only tensors and plain containers unless `weights_only=False`; the checkpoint
cannot be read back.

## Example
```python
import argparse

import torch

arguments = argparse.ArgumentParser().parse_args()
model = torch.nn.Linear(4, 1)
torch.save({"model": model.state_dict(), "args": arguments}, "model.pt")
model.load_state_dict(torch.load("model.pt", map_location="cpu")["model"])
```
Use instead:
```python
import argparse

import torch

arguments = argparse.ArgumentParser().parse_args()
model = torch.nn.Linear(4, 1)
torch.save({"model": model.state_dict(), "args": vars(arguments)}, "model.pt")
model.load_state_dict(torch.load("model.pt", map_location="cpu")["model"])
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import has_rest, keyword
from phalanx.lint.rule import Hit, Rule
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
    loads = [call for call, _ in context.calls_in_program("torch.load")]
    if (
        not loads
        or any(keyword(call, "weights_only") is not None or has_rest(call) for call in loads)
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


def _entries(node: ast.expr | None, context: Context, scope: Scope) -> list[tuple[ast.expr, Scope]]:
    found = context.origins(node, scope)
    return [(value, where) for made, where in found if isinstance(made, ast.Dict) for value in made.values]
