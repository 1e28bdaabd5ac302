"""Each rank draws a train and test split of its own.

## What it does
Finds `random_split` without a generator in a distributed program that never sets a common seed.

## Why is this bad?
Samples that one rank holds back for the evaluation are trained on by another: the measured accuracy is too high.

## Example
```diff
+import torch
 import torch.distributed as dist
 from torch.utils.data import random_split

 dist.init_process_group("gloo")
-train, test = random_split(list(range(100)), [80, 20])
+train, test = random_split(list(range(100)), [80, 20], generator=torch.Generator().manual_seed(17))
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.patterns import assigned_to, has_rest, root_name, seeded_by_library
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT065",
    symptom="perf.unexpected-intermediate-result",
    cause="split-differs-between-ranks",
    pattern="fix-batch-size-or-data-partition",
    do="Pass `generator=torch.Generator().manual_seed(…)` with the same number on every rank.",
    needs=("random_split", "train_test_split", "Subset"),
)


_TORCH_SEEDS: tuple[str, ...] = ("torch.manual_seed", "torch.random.manual_seed")
_DRAWS: dict[str, tuple[str, ...]] = {  # what draws indices, and what seeds it
    "torch.randperm": _TORCH_SEEDS,
    "numpy.random.permutation": ("numpy.random.seed",),
    "numpy.random.shuffle": ("numpy.random.seed",),
    "random.shuffle": ("random.seed",),
    "random.sample": ("random.seed",),
}


def check(context: Context) -> Iterator[Hit]:
    """Splits by a global generator that nothing seeds alike."""
    if not context.calls_in_program(INIT) or seeded_by_library(context):
        return
    for call, scope in context.calls("torch.utils.data.random_split", "sklearn.model_selection.train_test_split"):
        is_torch = context.name(call.func, scope).startswith("torch.")
        given = argument(call, 2, "generator") if is_torch else argument(call, 99, "random_state")
        seeds: tuple[str, ...] = _TORCH_SEEDS if is_torch else ("numpy.random.seed",)
        if (
            given is None
            and not has_rest(call)
            and not _is_seeded(context, seeds)
            and not context.is_main_of_spawn(scope)
        ):
            yield Hit(call, "Every rank draws its own split: what one holds back for testing another trains on")
    for name, draws in _DRAWS.items() if context.calls("torch.utils.data.Subset") else ():
        for call, scope in context.calls(name):
            is_seeded = any(item.arg == "generator" for item in call.keywords) or _is_seeded(context, draws)
            if not is_seeded and _makes_subset(call, context, scope) and not context.is_main_of_spawn(scope):
                yield Hit(call, "Every rank draws its own split: what one holds back for testing another trains on")


def _is_seeded(context: Context, names: tuple[str, ...]) -> bool:
    seeds = context.calls_in_program(*names)
    return any(call.args and not context.ranks.depends(call.args[0], scope) for call, scope in seeds)


def _makes_subset(call: ast.Call, context: Context, scope: Scope) -> bool:
    """Whether slices of the drawn indices become subsets in the same function."""
    names = assigned_to(context, call) | ({root_name(call.args[0])} if call.args else set())
    subsets = [c for c, s in context.calls("torch.utils.data.Subset") if s is scope]
    return len(subsets) > 1 and all(len(c.args) == 2 and root_name(c.args[1]) in names for c in subsets)
