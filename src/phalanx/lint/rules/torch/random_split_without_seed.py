"""Each rank draws a train and test split of its own.

## What it does
Finds `random_split` without a generator in a distributed program that never sets a common seed.

## Why is this bad?
Samples that one rank holds back for the evaluation are trained on by another: the measured accuracy is too high.

## Example
```python
import torch.distributed as dist
from torch.utils.data import random_split

dist.init_process_group("gloo")
train, test = random_split(list(range(100)), [80, 20])
dist.destroy_process_group()
```
Use instead:
```python
import torch
import torch.distributed as dist
from torch.utils.data import random_split

dist.init_process_group("gloo")
train, test = random_split(list(range(100)), [80, 20], generator=torch.Generator().manual_seed(17))
dist.destroy_process_group()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.patterns import has_rest
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument

RULE = Rule(
    code="LPT065",
    symptom="perf.unexpected-intermediate-result",
    cause="split-differs-between-ranks",
    pattern="fix-batch-size-or-data-partition",
    why="Samples that one rank holds back for the evaluation are trained on by another: the measured accuracy is too high.",
    do="Pass `generator=torch.Generator().manual_seed(…)` with the same number on every rank.",
    needs=("random_split",),
)


def check(context: Context) -> Iterator[Hit]:
    """Splits by a global generator that nothing seeds alike."""
    if not context.calls_in_program(INIT) or context.mentions("seed_everything", "set_seed", "fix_seed", "seed_all"):
        return
    seeds = context.calls_in_program("torch.manual_seed", "torch.random.manual_seed")
    if any(call.args and not context.ranks.depends(call.args[0], scope) for call, scope in seeds):
        return
    for call, scope in context.calls("torch.utils.data.random_split"):
        if argument(call, 2, "generator") is None and not has_rest(call) and not context.is_main_of_spawn(scope):
            yield Hit(call, "Every rank draws its own split: what one holds back for testing another trains on")
