"""Parameters of two models have the same names.

## What it does
Finds `named_parameters` that chain or add up the names of several modules without a prefix.

## Why is this bad?
Horovod matches tensors between processes by name and refuses duplicates: `Parameter names in named_parameters must be
unique`.

## Example
```diff
 import torch
 import horovod.torch as hvd

 hvd.init()
-import itertools
-
 encoder, head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
 model = torch.nn.Sequential(encoder, head)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
-names = itertools.chain(encoder.named_parameters(), head.named_parameters())
-optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=names)
+optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
 hvd.broadcast_parameters(model.state_dict(), root_rank=0)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LHV006",
    symptom="fail.other",
    cause="duplicate-parameter-names",
    pattern="fix-optimizer",
    do="Take the names from one module that holds both, or put a prefix before them.",
    needs=("named_parameters",),
)


def check(context: Context) -> Iterator[Hit]:
    """Several bare `named_parameters()` in one argument."""
    for call, scope in context.calls("horovod.torch.DistributedOptimizer"):
        given = keyword(call, "named_parameters")
        given = context.origin(given, scope)[0] if given is not None else None
        if given is None or isinstance(given, (ast.ListComp, ast.GeneratorExp)):
            continue
        inner = [
            i
            for i in ast.walk(given)
            if isinstance(i, ast.Call)
            and getattr(i.func, "attr", "") == "named_parameters"
            and not i.args
            and not i.keywords
        ]
        if len(inner) > 1:
            yield Hit(call, "The names of several modules are put together, and may occur twice")
