"""DDP or collectives in a script that never makes a process group.

## What it does
Finds scripts that wrap a model in DistributedDataParallel or call collectives, although nothing in the program makes
the default group.

## Why is this bad?
The first use raises `Default process group has not been initialized`.

## Example
```diff
 import torch
+import torch.distributed as dist
 from torch.nn.parallel import DistributedDataParallel

 if __name__ == "__main__":
+    dist.init_process_group("gloo")
     model = DistributedDataParallel(torch.nn.Linear(4, 1))
     model(torch.randn(8, 4)).sum().backward()
+    dist.destroy_process_group()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.infer import DDP, FSDP
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT003",
    symptom="comm.setup-failure",
    cause="group-not-initialised",
    pattern="fix-distributed-api-usage",
    do="Call `torch.distributed.init_process_group(backend)` first, and start the script with torchrun.",
    needs=("distributed", "DistributedDataParallel"),
)

_USES = (DDP, FSDP, "torch.distributed.all_reduce", "torch.distributed.barrier", "torch.distributed.broadcast", "torch.distributed.all_gather", "torch.distributed.get_rank")  # fmt: skip


def check(context: Context) -> Iterator[Hit]:
    """Scripts that are whole: every import is a framework, the standard library or a file of the project."""
    uses = context.calls(*_USES)
    if not uses or context.is_managed or context.is_horovod_job or not context.is_script:
        return
    if context.mentions(
        "init_process_group",
        "init_distributed",
        "init_device_mesh",
        "setup_distributed",
        "dist_init",
        "init_dist",
        "is_initialized",
        "is_available()",
        "distributed_init",
    ):
        return
    if context.has_unknown_imports:
        return
    call, _ = uses[0]
    if any(context.guard(item, scope) is not None or not _is_run(scope, context) for item, scope in uses[:1]):
        return
    yield Hit(call, f"`{context.text(call.func)}` is used, but nothing makes a process group")


def _is_run(scope: Scope, context: Context) -> bool:
    """Whether the program itself calls the code: a method that others call is theirs to prepare."""
    function = scope.function
    return function is None or bool(context.inference.callers(function))
