"""Every worker reads the whole stream of its rank.

## What it does
Finds IterableDataset classes that do not ask for the worker, used with several workers.

## Why is this bad?
Each worker process has its own copy of the data set and yields all of it: every sample comes `num_workers` times, and
once more for each rank.

## Example
```diff
 import torch
-from torch.utils.data import DataLoader, IterableDataset
+from torch.utils.data import DataLoader, IterableDataset, get_worker_info


 class Stream(IterableDataset):
     def __iter__(self):
-        return iter(range(100))
+        worker = get_worker_info()
+        return iter(range(worker.id, 100, worker.num_workers))


 loader = DataLoader(Stream(), batch_size=8, num_workers=4)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT066",
    symptom="perf.unexpected-intermediate-result",
    cause="iterable-dataset-not-split",
    pattern="fix-dataset-api-usage",
    do="Split the stream by `get_worker_info()` and the rank in `__iter__`.",
    needs=("IterableDataset",),
    is_distributed=False,
)

_ASKS = ("worker", "split_by", ".shard(")
_DRAWS = ("randn(", "randint(", "rand(", "random.random(", "normal(", "uniform(")  # workers draw with different seeds


def check(context: Context) -> Iterator[Hit]:
    """The class of the data set that a loader with workers gets."""
    for call, scope in context.calls("torch.utils.data.DataLoader"):
        workers = context.constant(keyword(call, "num_workers"), scope)
        if not isinstance(workers, int) or workers < 2 or keyword(call, "worker_init_fn") is not None or not call.args:
            continue
        for value in context.values(call.args[0], scope):
            made = value.node
            owner = context.inference.symbol(made.func, value.scope) if isinstance(made, ast.Call) else None
            if owner is None or "torch.utils.data.IterableDataset" not in context.inference.bases(owner):
                continue
            if not any(word in ast.unparse(owner.node) for word in (*_ASKS, *_DRAWS)) and not context.mentions(
                "get_worker_info(", "worker_id", "load_dataset", "webdataset"
            ):
                yield Hit(
                    call, f"Each of the {workers} workers yields all of its rank's `{getattr(owner.node, 'name', '')}`"
                )
