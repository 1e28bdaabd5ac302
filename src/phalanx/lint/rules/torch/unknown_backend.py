"""A backend that does not exist.

## What it does
Finds literal backends that are nearly, but not quite, one that PyTorch knows.

## Why is this bad?
`init_process_group` stops with `Invalid backend`.

## Example
```diff
+import os
+
+import torch
 import torch.distributed as dist

+torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
-dist.init_process_group("ncll")
+dist.init_process_group("nccl")
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument

RULE = Rule(
    code="LPT090",
    symptom="comm.setup-failure",
    cause="unknown-backend",
    pattern="fix-communication-configuration",
    do="Use nccl for GPUs, gloo for CPUs, or mpi or ucc in builds that have them.",
    needs=("init_process_group",),
)

_KNOWN = ("nccl", "gloo", "mpi", "ucc")
_OF_OTHERS = frozenset({"xccl", "ccl", "hccl", "cncl", "mccl", "eccl", "bkcl", "flagcx", "smddp", "xla", "fake"})


def check(context: Context) -> Iterator[Hit]:
    """Literals, in lower case, as PyTorch compares them."""
    for call, given in _backends(context):
        if (
            isinstance(given, str)
            and given.lower() not in (*_KNOWN, *_OF_OTHERS)
            and difflib.get_close_matches(given.lower().strip(), _KNOWN, cutoff=0.7)
        ):
            near = difflib.get_close_matches(given.lower().strip(), _KNOWN, cutoff=0.7)[0]
            yield Hit(call, f"There is no backend {given!r}", do=f"Use {near!r}.")


def _backends(context: Context) -> Iterator[tuple[ast.Call, object]]:
    """What `init_process_group` may get: every entry of a table that is written out counts."""
    for call, scope in context.calls(INIT):
        for made, where in context.origins(argument(call, 0, "backend"), scope):
            tables = context.origins(made.value, where) if isinstance(made, ast.Subscript) else ()
            entries = [(value, at) for table, at in tables if isinstance(table, ast.Dict) for value in table.values]
            yield from ((call, context.constant(item, at)) for item, at in entries or [(made, where)])
