"""A checkpoint that every rank writes to the same file.

## What it does
Finds `torch.save` and its like in a distributed program, outside of any condition on the rank, with a path that is
the same on all ranks.

## Why is this bad?
Ranks overwrite one another's file while it is written; the result is now and then a mixture that cannot be loaded.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 model = DistributedDataParallel(torch.nn.Linear(4, 1))
+if dist.get_rank() == 0:
-torch.save(model.module.state_dict(), "model.pt")
+    torch.save(model.module.state_dict(), "model.pt")
+dist.barrier()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Calls, Context
from phalanx.lint.patterns import has_rest
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument
from phalanx.lint.trainers import trains_on_many
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LCM010",
    symptom="fail.checkpoint-unusable",
    cause="all-ranks-write-one-file",
    pattern="fix-behavior-logic",
    do="Save on rank 0 only (`if rank == 0:`), or put the rank into the name of the file.",
    needs=("save", "dump", "Checkpoint("),
)

_DEPTH = 5
_HOOKED = frozenset({"lightning.LightningModule", "lightning.Callback"})  # their hooks run on every rank


def check(context: Context) -> Iterator[Hit]:
    """Unguarded writes with a path that does not depend on the rank."""
    if not (
        context.sets_up_torch
        or context.calls("horovod.torch.init", "horovod.tensorflow.init", "horovod.keras.init")
        or trains_on_many(context)
    ):
        return
    for call, scope in (
        *context.calls("torch.save", "pickle.dump", "json.dump", "joblib.dump", "numpy.save", "numpy.savez"),
        *_models(context),
    ):
        is_first = context.name(call.func, scope).startswith(("numpy.", "keras."))
        path = argument(call, 0 if is_first else 1, "filepath" if is_first else "f")
        if (
            path is None
            or has_rest(call)
            or context.guard(call, scope) is not None
            or _differs(path, context, scope, _DEPTH)
        ):
            continue
        if not _runs_on_ranks(context, scope, _DEPTH):
            continue
        yield Hit(call, f"Every rank writes `{context.text(path)}`")


def _models(context: Context) -> Calls:
    """Keras models that a job of PyTorch or Horovod saves, itself or by a callback."""
    saves = context.methods("save", "save_weights")
    kept = context.calls("keras.callbacks.ModelCheckpoint", "keras.callbacks.BackupAndRestore")
    return [*kept, *((c, s) for c, s in saves if context.name(c.func, s).startswith("keras."))]


def _runs_on_ranks(context: Context, scope: Scope, depth: int) -> bool:
    """Functions that nothing here calls may be called by one rank only; the launching process of `mp.spawn` is no rank."""
    function = scope.function
    if function is None:
        return not context.calls("torch.multiprocessing.spawn") and not context.is_main_of_spawn(scope)
    if context.is_main_of_spawn(scope):
        return False
    if function.owner is not None and context.inference.bases(function.owner) & _HOOKED:
        return getattr(function.node, "name", "").startswith("on_") and trains_on_many(context)
    calls = context.inference.callers(function)
    return (
        bool(calls)
        and depth > 0
        and all(_runs_on_ranks(context, where, depth - 1) for _, where in calls if where is not scope)
    )


def _differs(path: ast.expr, context: Context, scope: Scope, depth: int) -> bool:
    """Whether a path is, or may be, another on every rank."""
    if not depth:
        return True
    parts = [node for node in ast.walk(path) if isinstance(node, (ast.Name, ast.Attribute, ast.Call))]
    if any(context.ranks.depends(part, scope) for part in parts):
        return True
    names = [part for part in parts if isinstance(part, ast.Name) and part.id != "self"]
    if any(_from_outside(part, context, scope, depth) for part in names):
        return True
    fields = [
        item for part in parts if isinstance(part, ast.Attribute) for item in context.inference.fields(part, scope)
    ]
    if any(b.value is not None and _differs(b.value, context, where, depth - 1) for b, where in fields):
        return True
    return any(
        b.value is not None and b.value is not path and _differs(b.value, context, where, depth - 1)
        for part in parts
        if isinstance(part, ast.Name)
        for b, where in context.inference.reaching(part.id, part, scope)
        if b.kind == "assign"
    )


def _from_outside(part: ast.Name, context: Context, scope: Scope, depth: int) -> bool:
    """A parameter or an element of a loop: what it is on other ranks is not known."""
    found = context.inference.reaching(part.id, part, scope)
    for binding, where in found:
        if binding.kind == "param":
            handed = context.inference.handed(where, part.id)
            if not handed or any(_differs(given, context, at, depth - 1) for given, at in handed if given is not part):
                return True
        elif binding.kind == "with":
            call = binding.value
            is_open = (
                isinstance(call, ast.Call) and context.name(call.func, where) == "builtins.open" and bool(call.args)
            )
            mode = context.constant(argument(call, 1, "mode"), where) if isinstance(call, ast.Call) else None
            is_added = isinstance(mode, str) and "a" in mode  # lines of all ranks in one log
            if not is_open or is_added or not isinstance(call, ast.Call):
                return True
            return _differs(call.args[0], context, where, depth - 1)
    return False
