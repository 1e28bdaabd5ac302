"""Every rank trains on the whole data set.

## What it does
Finds loaders without a sampler that feed a training loop of a DDP program, whose data set does not depend on the
rank.

## Why is this bad?
All ranks see the same samples: n GPUs do the work of one, an epoch takes as long as before, and metrics count every
sample n times.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel
 from torch.utils.data import DataLoader, TensorDataset
+from torch.utils.data.distributed import DistributedSampler

 dist.init_process_group("gloo")
 dataset = TensorDataset(torch.randn(64, 4))
-loader = DataLoader(dataset, batch_size=8, shuffle=True)
+loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
 model = DistributedDataParallel(torch.nn.Linear(4, 1))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for (x,) in loader:
     optimizer.zero_grad()
     model(x).sum().backward()
     optimizer.step()
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP, FSDP, FULLY_SHARD
from phalanx.lint.loaders import is_sharded, is_stream, loaders_of
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT060",
    symptom="perf.unexpected-parallelization-or-device",
    cause="data-not-sharded",
    pattern="fix-batch-size-or-data-partition",
    do="Give the loader a `DistributedSampler(dataset)` in place of `shuffle=True`, and call its `set_epoch(epoch)` at the start of each epoch.",
    needs=("DataLoader",),
)

LOADER = "torch.utils.data.DataLoader"


def check(context: Context) -> Iterator[Hit]:
    """Loaders that a training loop iterates over."""
    if not context.calls_in_program(DDP, FSDP, FULLY_SHARD, "horovod.torch.DistributedOptimizer") or context.is_managed:
        return
    for loop, scope in context.training_loops:
        if isinstance(loop, ast.While):
            continue
        for value in loaders_of(loop.iter, context, scope):
            call = value.node
            if (
                isinstance(call, ast.Call)
                and not is_sharded(call, value.scope, context)
                and not _splits_batches(loop, context, scope)
            ):
                if is_stream(call, value.scope, context):
                    do = "Let `__iter__` yield every n-th item: those with `index % world_size == rank`."
                    yield Hit(
                        call, "Every rank reads the whole stream: nothing in the data set asks for the rank", do=do
                    )
                else:
                    yield Hit(call, "Every rank reads the whole data set: the loader has no DistributedSampler")


def _splits_batches(loop: ast.AST, context: Context, scope: Scope) -> bool:
    """The loop picks this rank's part of each batch itself."""
    return any(isinstance(node, ast.Subscript) and context.ranks.depends(node.slice, scope) for node in ast.walk(loop))
