"""The process group is never destroyed.

## What it does
Finds scripts that make a process group and never call `destroy_process_group`. Not part of the default set.

## Why is this bad?
Ranks that end early tear connections down while others still use them; NCCL may hang or warn at exit.

## Example
```diff
 import torch.distributed as dist

 if __name__ == "__main__":
     dist.init_process_group("gloo")
     dist.barrier()
+    dist.destroy_process_group()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.rule import Hit, Rule
from phalanx.model import Confidence

RULE = Rule(
    code="LPT078",
    symptom="fail.other",
    cause="group-not-destroyed",
    pattern="fix-distributed-api-usage",
    do="Call `dist.destroy_process_group()` at the end of the program.",
    confidence=Confidence.POSSIBLE,
    default=False,
    needs=("init_process_group",),
)


def check(context: Context) -> Iterator[Hit]:
    """Scripts, not modules of functions."""
    if context.is_script and not context.mentions("destroy_process_group", "atexit"):
        for call, _ in context.calls(INIT)[:1]:
            yield Hit(call, "The process group is never destroyed")
