"""A time-out given as a number.

## What it does
Finds literal numbers for `timeout` in `init_process_group`, `new_group` and `monitored_barrier`.

## Why is this bad?
PyTorch wants a `datetime.timedelta` and stops with TypeError.

## Example
```diff
+from datetime import timedelta
+
 import torch.distributed as dist

-dist.init_process_group("gloo", timeout=1800)
+dist.init_process_group("gloo", timeout=timedelta(seconds=1800))
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LPT077",
    symptom="comm.setup-failure",
    cause="timeout-of-wrong-type",
    pattern="fix-distributed-api-usage",
    do="Pass `datetime.timedelta(seconds=…)`.",
    needs=("timeout",),
)


def check(context: Context) -> Iterator[Hit]:
    """Literal numbers, also through a variable."""
    for call, scope in context.calls(INIT, "torch.distributed.new_group", "torch.distributed.monitored_barrier"):
        given = keyword(call, "timeout")
        if given is not None and _is_number(given, context, scope):
            yield Hit(call, f"`timeout={context.text(given)}` is a number; a timedelta is wanted")


def _is_number(node: ast.expr, context: Context, scope: Scope) -> bool:
    made, where = context.origin(node, scope)
    if isinstance(made, ast.BinOp):
        return _is_number(made.left, context, where) and _is_number(made.right, context, where)
    value = context.constant(made, where)
    return isinstance(value, (int, float)) and not isinstance(value, bool)
