"""The state of the wrapper is saved, with `module.` before every key.

## What it does
Finds `torch.save` of a DistributedDataParallel or DataParallel model's own `state_dict()`, unless the program loads
it into a wrapped model again.

## Why is this bad?
A plain model does not know keys that begin with `module.`: loading the checkpoint for evaluation or on one device
fails with missing and unexpected keys.

The repair by `--fix` adds `.module`.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 model = DistributedDataParallel(torch.nn.Linear(4, 1))
 if dist.get_rank() == 0:
-    torch.save(model.state_dict(), "model.pt")
+    torch.save(model.module.state_dict(), "model.pt")
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP
from phalanx.lint.patterns import column
from phalanx.lint.rule import Edit, Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT031",
    symptom="fail.checkpoint-unusable",
    cause="module-prefix-in-checkpoint",
    pattern="save-single-device-weights-only",
    do="Save `model.module.state_dict()`.",
    needs=("torch.save", "save("),
)


def check(context: Context) -> Iterator[Hit]:
    """`state_dict()` of a wrapper within what is saved."""
    loaders = context.methods_in_program("load_state_dict")
    if any(isinstance(c.func, ast.Attribute) and _is_wrapped(c.func.value, context, s) for c, s in loaders):
        return
    if context.mentions(
        "replace('module.'",
        'replace("module."',
        "consume_prefix_in_state_dict_if_present",
        "[7:]",
        "'module.'",
        '"module."',
    ):
        return
    for save, scope in context.calls("torch.save"):
        if save.args and isinstance(save.args[0], ast.Name) and _is_wrapped(save.args[0], context, scope):
            yield Hit(
                save,
                f"The wrapper `{save.args[0].id}` itself is saved: loading it needs a process group and the same class",
            )
        for state, where in _states(save.args[0] if save.args else None, context, scope):
            model = state.func.value if isinstance(state.func, ast.Attribute) else state
            if _is_wrapped(model, context, where) and not _is_asked(model, context):
                edit = _edit(state, context)
                yield Hit(
                    state,
                    f"`{context.text(state)}` is the wrapper's: every key in the checkpoint begins with `module.`",
                    edits=(edit,),
                )


def _states(node: ast.expr | None, context: Context, scope: Scope) -> list[tuple[ast.Call, Scope]]:
    """The calls of `state_dict()` of this file within what is saved."""
    return [
        (item, where)
        for made, where in context.origins(node, scope)
        if where.module is context.module
        for item in ast.walk(made)
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr == "state_dict"
    ]


def _is_wrapped(node: ast.expr, context: Context, scope: Scope) -> bool:
    """Certainly: everything that it may be is a wrapper."""
    values = context.values(node, scope)
    return bool(values) and all(value.type in (DDP, "torch.nn.parallel.DataParallel") for value in values)


def _is_asked(model: ast.expr, context: Context) -> bool:
    """Whether a branch around it asks what the model is: `if hasattr(model, "module"): … else: …`."""
    tests = [ast.unparse(p.test) for p, _ in context.module.ancestors(model) if isinstance(p, (ast.If, ast.IfExp))]
    name = ast.unparse(model)
    return any(f"{word}({name}" in test for test in tests for word in ("hasattr", "isinstance", "type"))


def _edit(state: ast.Call, context: Context) -> Edit:
    target = state.func.value if isinstance(state.func, ast.Attribute) else state
    line, at = target.end_lineno or 1, column(context, target.end_lineno or 1, target.end_col_offset or 0)
    return Edit((line, at), (line, at), ".module")
