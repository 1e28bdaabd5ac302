"""A DistributedSampler with another seed, or the wrong rank, on every rank.

## What it does
Finds `seed` arguments that depend on the rank, and `rank` or `num_replicas` of one host only.

## Why is this bad?
Ranks take every n-th sample of one common order. With different orders, or ranks within the host, some samples are
seen by several ranks and some by none.

## Example
```diff
 import torch.distributed as dist
 from torch.utils.data.distributed import DistributedSampler

 dist.init_process_group("gloo")
-sampler = DistributedSampler(list(range(64)), seed=dist.get_rank())
+sampler = DistributedSampler(list(range(64)), seed=17)
 sampler.set_epoch(0)
 print(len(list(sampler)))
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument
from phalanx.model import Confidence

RULE = Rule(
    code="LPT064",
    symptom="perf.unexpected-intermediate-result",
    cause="sampler-seed-differs",
    pattern="fix-batch-size-or-data-partition",
    do="Give all ranks the same seed, and let the sampler ask the process group for rank and number of replicas.",
    needs=("DistributedSampler",),
)

_LOCAL = ("LOCAL_RANK", "local_rank")


def check(context: Context) -> Iterator[Hit]:
    """Arguments of samplers."""
    for call, scope in context.calls("torch.utils.data.DistributedSampler"):
        seed, rank, count = argument(call, 4, "seed"), argument(call, 2, "rank"), argument(call, 1, "num_replicas")
        if seed is not None and context.ranks.depends(seed, scope):
            yield Hit(call, f"The sampler's seed `{context.text(seed)}` differs between ranks: samples overlap")
        elif (
            rank is not None
            and (context.ranks.kind(rank, scope) == "local" or any(word in ast.unparse(rank) for word in _LOCAL))
            and not context.calls_in_program("torch.multiprocessing.spawn")
        ):
            yield Hit(
                call,
                f"`rank={context.text(rank)}` is the rank within the host: with two hosts samples are read twice",
                confidence=Confidence.POSSIBLE,
            )
        elif (
            count is not None
            and "device_count" in ast.unparse(count)
            and not context.calls_in_program("torch.multiprocessing.spawn")
        ):
            yield Hit(
                call, f"`num_replicas={context.text(count)}` counts the GPUs of this host, not the ranks of the job"
            )
