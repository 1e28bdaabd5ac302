"""Every rank opens a run of its own in the experiment tracker.

## What it does
Finds `wandb.init`, `mlflow.start_run`, `SummaryWriter` and similar calls that every rank of a distributed program
makes.

## Why is this bad?
A job of n ranks shows up as n runs, or n processes write to one event file; curves are duplicated or mixed up.

## Example
```diff
 import torch.distributed as dist
 import wandb

 dist.init_process_group("gloo")
-run = wandb.init(project="demo")
+run = wandb.init(project="demo") if dist.get_rank() == 0 else None
 dist.destroy_process_group()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LCM012",
    symptom="perf.unexpected-intermediate-result",
    cause="side-effects-on-every-rank",
    pattern="fix-behavior-logic",
    do="Open the run on rank 0 only.",
    needs=("wandb", "mlflow", "SummaryWriter", "comet_ml", "neptune", "swanlab"),
)

_CALLS = ("wandb.init", "mlflow.start_run", "torch.utils.tensorboard.SummaryWriter", "tensorboardX.SummaryWriter", "comet_ml.Experiment", "neptune.init_run", "swanlab.init")  # fmt: skip


def check(context: Context) -> Iterator[Hit]:
    """Unguarded openings of runs, in a file that sets up the job itself."""
    if context.mentions("import ray") or not (
        context.calls(INIT) or context.calls("horovod.torch.init", "horovod.tensorflow.init", "horovod.keras.init")
    ):
        return
    for call, scope in context.calls(*_CALLS):
        given = [*call.args, *(item.value for item in call.keywords)]
        is_told = any(context.ranks.depends(value, scope) for value in given) or keyword(call, "group") is not None
        if not is_told and context.guard(call, scope) is None and not context.is_main_of_spawn(scope):
            yield Hit(
                call, f"Every rank calls `{context.text(call.func)}`: one run for each instead of one for the job"
            )
