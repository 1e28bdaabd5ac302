"""An environment variable is set to a number, or under a wrong name.

## What it does
Finds numbers assigned to `os.environ[…]`, and names that nearly are those of the rendezvous (MASTER_ADDRESS,
WORLDSIZE, …).

## Why is this bad?
`os.environ` takes strings only (`TypeError: str expected, not int`); a misspelt name is ignored, and the ranks never
meet.

## Example
```diff
 import os

 import torch.distributed as dist

 os.environ["MASTER_ADDR"] = "10.0.0.1"
-os.environ["MASTER_PORT"] = 29500
+os.environ["MASTER_PORT"] = "29500"
 dist.init_process_group("gloo", rank=int(os.environ["SLURM_PROCID"]), world_size=2)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LPT088",
    symptom="comm.setup-failure",
    cause="variable-of-wrong-type",
    pattern="fix-communication-configuration",
    do="Write the value as a string, under the name that PyTorch reads: MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE, LOCAL_RANK.",
    needs=("environ",),
)

_WRONG = {"MASTER_ADDRESS": "MASTER_ADDR", "MASTER_IP": "MASTER_ADDR", "MASTER_HOST": "MASTER_ADDR", "MASTERADDR": "MASTER_ADDR", "MASTER_ADR": "MASTER_ADDR", "MASTERPORT": "MASTER_PORT", "WORLDSIZE": "WORLD_SIZE", "LOCALRANK": "LOCAL_RANK"}  # fmt: skip


def check(context: Context) -> Iterator[Hit]:
    """Assignments to `os.environ`, in programs with torch.distributed."""
    if not context.is_torch_job:
        return
    for node, scope in context.module.nodes[ast.Assign]:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if (
            not isinstance(target, ast.Subscript)
            or not isinstance(node, ast.Assign)
            or context.name(target.value, scope) != "os.environ"
        ):
            continue
        key, value = context.constant(target.slice, scope), context.constant(node.value, scope)
        if isinstance(value, (int, float)):
            yield Hit(node, f"`os.environ` takes strings, not {value!r}")
        elif key in _WRONG and _WRONG[str(key)] not in context.module.code:
            yield Hit(node, f"PyTorch does not read {key}", do=f"Set {_WRONG[str(key)]}.")
