"""Ranks build different models and wrap them.

## What it does
Finds models that are built or changed under a condition on the rank and then given to DistributedDataParallel or
FSDP.

## Why is this bad?
DDP compares the parameters of all ranks when it is constructed and fails; where shapes happen to agree, it averages
gradients of different layers.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 net = torch.nn.Sequential(torch.nn.Linear(4, 1))
-if dist.get_rank() == 1:
-    net.append(torch.nn.Linear(1, 1))
 model = DistributedDataParallel(net)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP, FSDP
from phalanx.lint.patterns import root_name
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT042",
    symptom="prep.model-loading-failure",
    cause="model-differs-between-ranks",
    pattern="fix-model-construction",
    do="Build the same model on every rank.",
)

_GROWS = frozenset({"append", "add_module", "insert", "extend"})


_LAYERS = ("torch.nn.Linear", "torch.nn.Conv", "torch.nn.Embedding", "torch.nn.LSTM", "torch.nn.GRU", "keras.layers.", "tensorflow.Variable")  # fmt: skip
_TENSORS = ("tensorflow.zeros", "tensorflow.ones", "tensorflow.random.")
_REPLICATED = (DDP, FSDP, "horovod.torch.DistributedOptimizer", "horovod.keras.DistributedOptimizer", "horovod.tensorflow.DistributedGradientTape", "tensorflow.distribute.MultiWorkerMirroredStrategy")  # fmt: skip


def check(context: Context) -> Iterator[Hit]:
    """What happened to the wrapped variable before, and sizes of layers."""
    yield from _sizes(context)
    for wrap, scope in context.calls(DDP, FSDP):
        name = wrap.args[0].id if wrap.args and isinstance(wrap.args[0], ast.Name) else ""
        if not name or context.guard(wrap, scope) is not None:
            continue
        for call, where in context.methods(*_GROWS):
            is_before = where is scope and root_name(call.func) == name and call.lineno < wrap.lineno
            if is_before and context.ranks.guard(call, scope, callers=False) is not None:
                yield Hit(call, f"`{name}` gets another layer on some ranks only, and is then wrapped")
        for binding in scope.bindings.get(name, ()):
            value = binding.value
            if (
                isinstance(value, ast.IfExp)
                and binding.kind == "assign"
                and context.ranks.depends(value.test, scope)
                and isinstance(value.body, ast.Call)
                and isinstance(value.orelse, ast.Call)
            ):
                yield Hit(value, f"`{name}` is another model on other ranks, and is then wrapped")


def _sizes(context: Context) -> Iterator[Hit]:
    """Layers and variables whose size is another on every rank, in programs where ranks hold copies of one model."""
    if not context.calls_in_program(*_REPLICATED):
        return
    for call, scope in context.module.calls:
        name = context.name(call.func, scope)
        if not name.startswith(_LAYERS) or not name.rpartition(".")[2][:1].isupper():
            continue
        sizes = [*call.args, *(k.value for k in call.keywords if k.arg in ("in_features", "out_features", "units"))]
        if name == "tensorflow.Variable":
            first = call.args[0] if call.args else None
            is_made = isinstance(first, ast.Call) and context.name(first.func, scope).startswith(_TENSORS)
            sizes = [*first.args[:1]] if is_made and isinstance(first, ast.Call) else []
        differs = next((size for size in sizes if context.ranks.depends(size, scope)), None)
        if differs is not None:
            yield Hit(
                call,
                f"The size `{context.text(differs)}` of this layer depends on the rank; ranks must hold the same model",
            )
