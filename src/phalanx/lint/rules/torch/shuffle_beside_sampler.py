"""`shuffle=True` beside a sampler.

## What it does
Finds loaders that get both a sampler and `shuffle=True`.

## Why is this bad?
DataLoader refuses it: `sampler option is mutually exclusive with shuffle`.

The repair by `--fix` removes `shuffle`.

## Example
```diff
 import torch.distributed as dist
 from torch.utils.data import DataLoader
 from torch.utils.data.distributed import DistributedSampler

 dist.init_process_group("gloo")
 dataset = list(range(64))
-loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset), shuffle=True)
+loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=True))
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import drop_keyword, keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT062",
    symptom="prep.data-loading-failure",
    cause="shuffle-beside-sampler",
    pattern="fix-dataset-api-usage",
    do="Leave `shuffle` out of the loader; DistributedSampler shuffles by default.",
    needs=("shuffle",),
)


def check(context: Context) -> Iterator[Hit]:
    """Literal True, and a sampler that is surely one."""
    for call, scope in context.calls("torch.utils.data.DataLoader"):
        sampler = keyword(call, "sampler")
        values = context.values(sampler, scope)
        is_sampler = bool(values) and all(value.type.startswith("torch.utils.data.") for value in values)
        if (
            is_sampler
            and context.constant(keyword(call, "shuffle"), scope) is True
            and not _may_be_none(sampler, context, scope)
        ):
            edit = drop_keyword(context, call, "shuffle")
            yield Hit(
                call,
                "DataLoader gets a sampler and `shuffle=True`, which exclude each other",
                edits=(edit,) if edit else (),
            )


def _may_be_none(node: ast.expr | None, context: Context, scope: Scope) -> bool:
    return len(context.origins(node, scope)) > 1
