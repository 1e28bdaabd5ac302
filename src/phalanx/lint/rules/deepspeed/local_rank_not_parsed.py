"""The parser does not know DeepSpeed's `--local_rank`.

## What it does
Finds scripts with `deepspeed.initialize` and an argparse parser without `--local_rank`.

## Why is this bad?
The `deepspeed` launcher passes `--local_rank=n` to the script, which argparse refuses: `unrecognized arguments`.

## Example
```diff
 import argparse

 import deepspeed
 import torch

 parser = argparse.ArgumentParser()
 parser.add_argument("--epochs", type=int, default=1)
+parser.add_argument("--local_rank", type=int, default=-1)
+parser = deepspeed.add_config_arguments(parser)
 args = parser.parse_args()
 net = torch.nn.Linear(4, 1)
 engine, _, _, _ = deepspeed.initialize(args=args, model=net, model_parameters=net.parameters())
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LDS002",
    symptom="comm.setup-failure",
    cause="unknown-launcher-argument",
    pattern="fix-command-line",
    do="Add `parser.add_argument('--local_rank', type=int, default=-1)`.",
    needs=("deepspeed",),
)


def check(context: Context) -> Iterator[Hit]:
    """Parsers made and used in the same file."""
    if not context.calls("deepspeed.initialize") or context.mentions(
        "local_rank", "local-rank", "parse_known_args", "no_local_rank", "HfArgumentParser"
    ):
        return
    for call, _ in context.calls("argparse.ArgumentParser.parse_args"):
        if not context.has_unknown_imports:
            yield Hit(call, "The launcher passes `--local_rank`, which this parser does not know")
