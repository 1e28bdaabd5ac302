"""A DistributedSampler that never learns the epoch.

## What it does
Finds training over several epochs with a shuffling DistributedSampler and no `set_epoch` call in the program.

## Why is this bad?
The sampler shuffles with a seed made of its seed and the epoch. Without `set_epoch` every epoch has the same order,
which costs accuracy.

The repair by `--fix` adds the call as the first line of the loop over epochs.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel
 from torch.utils.data import DataLoader, TensorDataset
 from torch.utils.data.distributed import DistributedSampler

 dist.init_process_group("gloo")
 dataset = TensorDataset(torch.randn(64, 4))
 sampler = DistributedSampler(dataset)
 loader = DataLoader(dataset, batch_size=8, sampler=sampler)
 model = DistributedDataParallel(torch.nn.Linear(4, 1))
 for epoch in range(3):
+    sampler.set_epoch(epoch)
     for (x,) in loader:
         model(x).sum().backward()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.loaders import loaders_of
from phalanx.lint.patterns import assigned_to, column, has_rest, keyword
from phalanx.lint.rule import Edit, Hit, Rule
from phalanx.lint.syntax import argument
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT061",
    symptom="perf.unexpected-intermediate-result",
    cause="sampler-not-reshuffled",
    pattern="fix-dataset-api-usage",
    do="Call `sampler.set_epoch(epoch)` at the start of each epoch.",
    needs=("DistributedSampler",),
)

SAMPLER = "torch.utils.data.DistributedSampler"


def check(context: Context) -> Iterator[Hit]:
    """Samplers of loaders that are iterated over inside of another loop."""
    set_epochs = context.methods_in_program("set_epoch")
    if any(not isinstance(item, ast.Constant) for call, _ in set_epochs for item in call.args) or context.is_managed:
        return
    what = "`set_epoch` always gets the same number" if set_epochs else "`set_epoch` is never called"
    for call, scope in context.calls(SAMPLER):
        shuffles = argument(call, 3, "shuffle")
        if has_rest(call) or (shuffles is not None and context.constant(shuffles, scope) is not True):
            continue
        outer = _epochs(call, context)
        if outer is not None:
            edit = _edit(call, outer, context, scope)
            yield Hit(call, f"{what}: every epoch has the same order", edits=(edit,) if edit and not set_epochs else ())


def _epochs(sampler: ast.Call, context: Context) -> ast.For | None:
    """The loop around the training loop that uses the sampler, in the same function or around the call of it."""
    for other in context.contexts:
        for loop, scope in other.training_loops:
            if isinstance(loop, ast.While) or not _uses(loop, sampler, other, scope):
                continue
            outer = next((item for item in other.loops_around(loop) if isinstance(item, ast.For)), None)
            if outer is not None:
                return outer
            for call, where in other.inference.callers(scope) if scope.is_function else ():
                around = other.space.context(where.module).loops_around(call)
                found = next((item for item in around if isinstance(item, ast.For)), None)
                if found is not None:
                    return found
    return None


def _uses(loop: ast.For | ast.AsyncFor, sampler: ast.Call, context: Context, scope: Scope) -> bool:
    loaders = [(v.node, v.scope) for v in loaders_of(loop.iter, context, scope) if isinstance(v.node, ast.Call)]
    return any(v.node is sampler for call, at in loaders for v in context.values(keyword(call, "sampler"), at))


def _edit(call: ast.Call, outer: ast.For, context: Context, scope: Scope) -> Edit | None:
    names = assigned_to(context, call)
    same = outer in context.module.parents and context.module.scope_of(outer) is scope
    if len(names) != 1 or not isinstance(outer.target, ast.Name) or not same:
        return None
    first = outer.body[0]
    indent = context.module.lines[first.lineno - 1][: column(context, first.lineno, first.col_offset)]
    if indent.strip():
        return None
    return Edit((first.lineno, 0), (first.lineno, 0), f"{indent}{names.pop()}.set_epoch({outer.target.id})\n")
