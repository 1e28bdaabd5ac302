"""A checkpoint is loaded without `map_location` in a distributed job.

## What it does
Finds `torch.load` without `map_location` whose result goes into a model or optimizer, in programs that use GPUs or
load a file that they did not write.

## Why is this bad?
Tensors go back to the device they were saved from, mostly `cuda:0`: every rank allocates memory on GPU 0, which runs
full, and on machines without that device loading fails.

The repair by `--fix` adds `map_location="cpu"`; `load_state_dict` copies to the model's device.

## Example
```diff
 import os

 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 local_rank = int(os.environ["LOCAL_RANK"])
 torch.cuda.set_device(local_rank)
 dist.init_process_group("nccl")
 model = torch.nn.Linear(4, 1).cuda()
-model.load_state_dict(torch.load("model.pt"))
+model.load_state_dict(torch.load("model.pt", map_location="cpu"))
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import append_argument, assigned_to, has_rest, names_in
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT050",
    symptom="fail.out-of-memory",
    cause="checkpoint-of-another-device",
    pattern="fix-device-assignment",
    do="Pass `map_location='cpu'` (load_state_dict copies to the right device) or the rank's device.",
    needs=("torch.load", "load("),
)


def check(context: Context) -> Iterator[Hit]:
    """Loads whose result is handed to `load_state_dict` in the same function."""
    if not context.sets_up_torch:
        return
    if not context.mentions("cuda") and context.calls_in_program("torch.save"):
        return
    for call, scope in context.calls("torch.load"):
        if argument(call, 1, "map_location") is not None or has_rest(call) or not _is_state(call, context, scope):
            continue
        others = [
            c for c, s in context.calls("torch.load") if s is scope and argument(c, 1, "map_location") is not None
        ]
        if any(c.args and call.args and ast.dump(c.args[0]) == ast.dump(call.args[0]) for c in others):
            continue  # the other branch maps it
        edits = append_argument(context, call, 'map_location="cpu"')
        yield Hit(
            call,
            f"`{context.text(call)}` puts the tensors where they were saved from, mostly GPU 0, on every rank",
            edits=edits,
        )


def _is_state(call: ast.Call, context: Context, scope: Scope) -> bool:
    names = assigned_to(context, call)
    for item, where in context.methods("load_state_dict"):
        is_small = "scaler" in ast.unparse(item.func)
        if (
            where is scope
            and item.args
            and not is_small
            and (call in list(ast.walk(item)) or names & names_in(item.args[0]))
        ):
            return True
    return False
