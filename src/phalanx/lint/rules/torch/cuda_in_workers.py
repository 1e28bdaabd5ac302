"""A data set that uses CUDA in its worker processes.

## What it does
Finds `.cuda()` or `.to("cuda")` in `__getitem__` of data sets that a loader with workers reads.

## Why is this bad?
Workers are forked, and CUDA cannot be used in a fork: `Cannot re-initialize CUDA in forked subprocess`.

## Example
```diff
 import torch
 from torch.utils.data import DataLoader, Dataset


 class Data(Dataset):
     def __len__(self):
         return 64

     def __getitem__(self, index):
-        return torch.zeros(4).cuda()
+        return torch.zeros(4)


-loader = DataLoader(Data(), batch_size=8, num_workers=4)
+loader = DataLoader(Data(), batch_size=8, num_workers=4, pin_memory=True)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import calls_below, keyword
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT087",
    symptom="prep.device-error",
    cause="cuda-in-forked-worker",
    pattern="fix-device-assignment",
    do="Return tensors on the CPU and move the batch in the training loop.",
    needs=("num_workers",),
    is_distributed=False,
)


def check(context: Context) -> Iterator[Hit]:
    """The class behind a loader with workers."""
    if context.mentions("set_start_method", "multiprocessing_context"):
        return
    for call, scope in context.calls("torch.utils.data.DataLoader"):
        workers = context.constant(keyword(call, "num_workers"), scope)
        if not call.args or not isinstance(workers, int) or workers < 1:
            continue
        for value in context.values(call.args[0], scope):
            owner = context.inference.symbol(value.node.func, value.scope) if isinstance(value.node, ast.Call) else None
            method = (
                context.inference.member(owner, "__getitem__")
                if owner is not None and isinstance(owner.node, ast.ClassDef)
                else None
            )
            for item in calls_below(method.body) if method is not None else ():
                first = item.args[0] if item.args else None
                is_cuda = getattr(item.func, "attr", "") == "cuda" or (
                    getattr(item.func, "attr", "") == "to"
                    and isinstance(first, ast.Constant)
                    and str(first.value).startswith("cuda")
                )
                if is_cuda:
                    yield Hit(
                        call,
                        f"`{context.text(item)}` runs in worker processes, which cannot use CUDA",
                        also=((context.module.file, item.lineno, context.module.line(item.lineno)),),
                    )
                    break
