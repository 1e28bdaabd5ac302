"""A DistributedSampler that asks torch.distributed, in a Horovod job.

## What it does
Finds `DistributedSampler(dataset)` without `num_replicas` and `rank` in Horovod programs.

## Why is this bad?
The sampler asks the default process group of PyTorch, which Horovod does not make: `Default process group has not
been initialized`.

## Example
```diff
 import torch
 import horovod.torch as hvd

 hvd.init()
 model = torch.nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
 optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
 hvd.broadcast_parameters(model.state_dict(), root_rank=0)
 hvd.broadcast_optimizer_state(optimizer, root_rank=0)
 from torch.utils.data.distributed import DistributedSampler

-sampler = DistributedSampler(list(range(64)))
+sampler = DistributedSampler(list(range(64)), num_replicas=hvd.size(), rank=hvd.rank())
 print(len(sampler))
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.patterns import has_rest
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument

RULE = Rule(
    code="LHV008",
    symptom="comm.setup-failure",
    cause="sampler-without-process-group",
    pattern="fix-dataset-api-usage",
    do="Pass `num_replicas=hvd.size(), rank=hvd.rank()`.",
    needs=("DistributedSampler",),
)


def check(context: Context) -> Iterator[Hit]:
    """Samplers without both arguments."""
    if not context.calls_in_program("horovod.torch.init") or context.calls_in_program(INIT):
        return
    for call, _ in context.calls("torch.utils.data.DistributedSampler"):
        if argument(call, 1, "num_replicas") is None and not has_rest(call):
            yield Hit(call, "This sampler asks torch.distributed for the ranks, which Horovod does not set up")
