"""Horovod is used without `hvd.init()`.

## What it does
Finds programs that call Horovod and never initialise it.

## Why is this bad?
The first call stops with `Horovod has not been initialized; use hvd.init()`.

## Example
```diff
 import torch
 import horovod.torch as hvd

+hvd.init()
 print(hvd.rank())
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LHV001",
    symptom="comm.setup-failure",
    cause="group-not-initialised",
    pattern="fix-distributed-api-usage",
    do="Call `hvd.init()` right after the imports.",
    needs=("horovod",),
)

_USES = tuple(
    f"horovod.{kind}.{name}"
    for kind in ("torch", "tensorflow", "keras")
    for name in ("rank", "size", "local_rank", "allreduce", "broadcast_parameters", "DistributedOptimizer")
)


def check(context: Context) -> Iterator[Hit]:
    """Uses at the top level or in functions of a script."""
    uses = context.calls(*_USES)
    inits = context.calls(*(f"horovod.{kind}.init" for kind in ("torch", "tensorflow", "keras")))
    for call, scope in uses:
        later = [c for c, s in inits if s is scope and c.lineno > call.lineno]
        if later and not any(s is scope and c.lineno < call.lineno for c, s in inits):
            yield Hit(call, f"`{context.text(call.func)}` is called before `hvd.init()` at line {later[0].lineno}")
            return
    is_run = uses and (context.is_script or uses[0][1] is context.module.scope)
    if not is_run or context.methods_in_program("init") or context.has_unknown_imports:
        return
    if not any(
        name.startswith(("horovod.spark", "horovod.ray", "horovod.run")) for name in context.space.named(context.module)
    ):
        yield Hit(uses[0][0], f"`{context.text(uses[0][0].func)}` is called, but nothing calls `hvd.init()`")
