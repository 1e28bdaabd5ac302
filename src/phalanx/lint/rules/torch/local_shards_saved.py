"""Only this rank's shards of a sharded model are saved.

## What it does
Finds `torch.save` of `to_local()` tensors, or of an FSDP2 model's own `state_dict()` by one rank.

## Why is this bad?
A file then holds a part of the weights in a shape that no plain model has; nothing else can load it.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.distributed.fsdp import fully_shard

 dist.init_process_group("gloo")
 rank = dist.get_rank()
 model = torch.nn.Linear(4, 1)
 fully_shard(model)
-state = {name: tensor.to_local() for name, tensor in model.state_dict().items()}
+state = {name: tensor.full_tensor() for name, tensor in model.state_dict().items()}
+if rank == 0:
-torch.save(state, f"model-{rank}.pt")
+    torch.save(state, "model.pt")
+dist.barrier()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import FSDP, FULLY_SHARD
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT052",
    symptom="fail.checkpoint-unusable",
    cause="sharded-checkpoint-misread",
    pattern="save-single-device-weights-only",
    do="Gather the whole tensors on all ranks (`full_tensor()`, or `get_model_state_dict` with `full_state_dict=True`) and save them on rank 0; or use `torch.distributed.checkpoint`.",
    needs=("to_local", "fully_shard"),
)


def check(context: Context) -> Iterator[Hit]:
    """What is saved, followed to the comprehension that made it."""
    if not context.calls_in_program(FULLY_SHARD, FSDP):
        return
    for call, scope in context.calls("torch.save"):
        first = call.args[0] if call.args else None
        found = [made for made, _ in context.origins(first, scope)]
        if any(".to_local()" in ast.unparse(item) for item in found):
            yield Hit(call, "Only this rank's shards (`to_local()`) are saved; no plain model can load them")
            continue
        for model, where in _states(first, context, scope) if first is not None else ():
            is_inner = context.collectives.forwards.is_sharded(model, where) and not context.is_a(model, where, FSDP)
            if is_inner and context.guard(call, scope) is not None:
                text = f"`{context.text(model)}.state_dict()` holds only this rank's shards, and one rank saves it"
                yield Hit(call, text)


def _states(saved: ast.expr, context: Context, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """The models whose own `state_dict()` is saved, as it is or as an entry of a dictionary."""
    for made, where in context.origins(saved, scope):
        entries = made.values if isinstance(made, ast.Dict) else [made]
        for item, at in (origin for entry in entries for origin in context.origins(entry, where)):
            if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr == "state_dict":
                yield item.func.value, at
