"""Batch normalisation is converted after the model was wrapped.

## What it does
Finds `SyncBatchNorm.convert_sync_batchnorm` on a DistributedDataParallel model.

## Why is this bad?
The conversion replaces layers, and DDP does not know the new ones: their gradients are not averaged.

## Example
```diff
 import torch
 import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
-model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)))
+net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
-model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
+model = DistributedDataParallel(torch.nn.SyncBatchNorm.convert_sync_batchnorm(net))
 dist.destroy_process_group()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP, FSDP
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT039",
    symptom="prep.model-loading-failure",
    cause="converted-after-wrapping",
    pattern="fix-model-construction",
    do="Convert first, then wrap.",
    needs=("SyncBatchNorm",),
)


def check(context: Context) -> Iterator[Hit]:
    """The argument of the conversion."""
    for call, scope in context.calls("torch.nn.SyncBatchNorm.convert_sync_batchnorm"):
        if call.args and context.is_a(call.args[0], scope, DDP, FSDP):
            yield Hit(call, "The model is converted to SyncBatchNorm after it was wrapped")
