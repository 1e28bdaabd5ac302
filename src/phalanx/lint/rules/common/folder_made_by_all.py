"""A folder that all ranks make at the same moment.

## What it does
Finds `os.makedirs`, `os.mkdir` and `Path.mkdir` without `exist_ok=True` that every rank of a distributed program
runs.

## Why is this bad?
One rank makes the folder, the others fail with FileExistsError; a test whether it exists before does not help,
because ranks test at the same time.

The repair by `--fix` adds `exist_ok=True`.

## Example
```diff
 import os

 import torch.distributed as dist

 dist.init_process_group("gloo")
 if not os.path.exists("checkpoints"):
-    os.makedirs("checkpoints")
+    os.makedirs("checkpoints", exist_ok=True)
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import INIT, Context
from phalanx.lint.patterns import append_argument, has_rest, keyword
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LCM011",
    symptom="fail.path-error",
    cause="folder-already-exists",
    pattern="fix-behavior-logic",
    do="Pass `exist_ok=True`.",
    needs=("mkdir", "makedirs"),
)


def check(context: Context) -> Iterator[Hit]:
    """Unguarded makers of folders. They are functions of ranks only where the same file sets up the job."""
    if not context.calls(INIT, "horovod.torch.init", "horovod.tensorflow.init", "horovod.keras.init"):
        return
    for call, scope in context.calls("os.makedirs", "os.mkdir", "pathlib.Path.mkdir"):
        if keyword(call, "exist_ok") is not None or has_rest(call) or context.guard(call, scope) is not None:
            continue
        path = call.args[0] if call.args else None
        caught = any(isinstance(item, ast.Try) for item in context.within(call, ast.Try))
        if caught or (path is not None and context.ranks.depends(path, scope)) or context.is_main_of_spawn(scope):
            continue
        is_mkdir = context.name(call.func, scope) == "os.mkdir"
        edits = () if is_mkdir else append_argument(context, call, "exist_ok=True")
        do = "Use `os.makedirs(…, exist_ok=True)`." if is_mkdir else ""
        yield Hit(
            call,
            f"All ranks run `{context.text(call)}`; all but the first fail with FileExistsError",
            do=do,
            edits=edits,
        )
