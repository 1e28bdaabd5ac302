"""The script knows `--local_rank`, the launcher says `--local-rank`.

## What it does
Finds parsers that have `--local_rank` only, in scripts that read no LOCAL_RANK.

## Why is this bad?
Since PyTorch 2.0 `torch.distributed.launch` passes `--local-rank`, which argparse refuses; torchrun passes none, so
every process keeps the default.

The repair by `--fix` adds the other spelling.

## Example
```diff
 import argparse
+import os

 import torch
 import torch.distributed as dist

 parser = argparse.ArgumentParser()
-parser.add_argument("--local_rank", type=int, default=0)
+parser.add_argument("--local-rank", "--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", 0)))
 args = parser.parse_args()
 torch.cuda.set_device(args.local_rank)
 dist.init_process_group("nccl")
 dist.destroy_process_group()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import column
from phalanx.lint.rule import Edit, Hit, Rule

RULE = Rule(
    code="LPT074",
    symptom="comm.setup-failure",
    cause="unknown-launcher-argument",
    pattern="fix-command-line",
    do="Read `os.environ['LOCAL_RANK']`, which all launchers of PyTorch set; accept both spellings of the argument.",
    needs=("--local_rank",),
)


def check(context: Context) -> Iterator[Hit]:
    """Parsers of programs that use torch.distributed; DeepSpeed's launcher does pass `--local_rank`."""
    if context.mentions("LOCAL_RANK", "deepspeed", "parse_known_args", "--local-rank") or not context.is_torch_job:
        return
    for call, scope in context.methods("add_argument"):
        if any(context.constant(item, scope) == "--local_rank" for item in call.args):
            first = call.args[0]
            at = (first.lineno, column(context, first.lineno, first.col_offset))
            yield Hit(
                call,
                "The launcher passes `--local-rank` or nothing, never `--local_rank`",
                edits=(Edit(at, at, '"--local-rank", '),),
            )
