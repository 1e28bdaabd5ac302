"""Ranks read a file that rank 0 may not have written yet.

## What it does
Finds a file that one rank writes under a condition and that all ranks load afterwards in the same function, without a
collective in between.

## Why is this bad?
The other ranks do not wait: they find no file, an old one, or half of one.

## Example
```diff
 import torch
 import torch.distributed as dist

 dist.init_process_group("gloo")
 model = torch.nn.Linear(4, 1)
 if dist.get_rank() == 0:
     torch.save(model.state_dict(), "start.pt")
+dist.barrier()
 model.load_state_dict(torch.load("start.pt", map_location="cpu"))
 dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Calls, Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LCM013",
    symptom="fail.path-error",
    cause="file-read-before-written",
    pattern="fix-behavior-logic",
    do="Put a barrier between writing and reading, after the condition.",
    needs=("load", "open(", "download", "read_"),
)

# Position and name of the path among the arguments.
_WRITERS = {"torch.save": (1, "f"), "numpy.save": (0, "file"), "numpy.savez": (0, "file"), "joblib.dump": (1, "filename"), "torch.hub.download_url_to_file": (1, "dst"), "urllib.request.urlretrieve": (1, "filename"), "safetensors.torch.save_file": (1, "filename")}  # fmt: skip
_READERS = {"torch.load": (0, "f"), "numpy.load": (0, "file"), "joblib.load": (0, "filename"), "pandas.read_csv": (0, ""), "pandas.read_parquet": (0, ""), "datasets.load_from_disk": (0, ""), "safetensors.torch.load_file": (0, "filename")}  # fmt: skip
_WRITING_METHODS = {"to_csv": 0, "to_parquet": 0, "save_to_disk": 0, "save_pretrained": 0}


def check(context: Context) -> Iterator[Hit]:
    """Pairs of a guarded write and an unguarded read of the same expression, with no collective between."""
    if not (context.is_torch_job or context.is_horovod_job):
        return
    writes = [(c, s, p) for c, s, p in _writes(context) if context.ranks.guard(c, s, callers=False) is not None]
    reads = list(_reads(context)) if writes else []
    for write, scope, path in writes:
        for read, where, other in reads:
            if where is scope and read.lineno > write.lineno and ast.dump(other) == ast.dump(path):
                yield from _between(write, read, path, context, scope)


def _writes(context: Context) -> Iterator[tuple[ast.Call, Scope, ast.expr]]:
    yield from _with_paths(context, _WRITERS)
    for call, scope in context.methods(*_WRITING_METHODS):
        if call.args:
            yield call, scope, call.args[0]
    for call, scope in context.calls("builtins.open"):
        if call.args and _mode(call, context, scope)[:1] in ("w", "x"):
            yield call, scope, call.args[0]
    for call, scope in _datasets(context):
        if context.constant(argument(call, 99, "download"), scope) is True and call.args:
            yield call, scope, call.args[0]


def _reads(context: Context) -> Iterator[tuple[ast.Call, Scope, ast.expr]]:
    found = [*_with_paths(context, _READERS)]
    for call, scope in context.calls("builtins.open"):
        if call.args and _mode(call, context, scope)[:1] in ("", "r"):
            found.append((call, scope, call.args[0]))
    for call, scope in _datasets(context):
        if context.constant(argument(call, 99, "download"), scope) is not True and call.args:
            found.append((call, scope, call.args[0]))
    for call, scope, path in found:
        if context.ranks.guard(call, scope, callers=False) is None:
            yield call, scope, path


def _with_paths(context: Context, names: dict[str, tuple[int, str]]) -> Iterator[tuple[ast.Call, Scope, ast.expr]]:
    for name, (position, word) in names.items():
        for call, scope in context.calls(name):
            path = argument(call, position, word)
            if path is not None:
                yield call, scope, path


def _datasets(context: Context) -> Calls:
    """Data sets that download themselves."""
    named = context.space.named(context.module)
    return [item for name, calls in named.items() if name.startswith("torchvision.datasets.") for item in calls]


def _mode(call: ast.Call, context: Context, scope: Scope) -> str:
    given = argument(call, 1, "mode")
    return str(context.constant(given, scope) or "?") if given is not None else ""


def _between(write: ast.Call, read: ast.Call, path: ast.expr, context: Context, scope: Scope) -> Iterator[Hit]:
    inside = [c for c, s in context.module.calls if s is scope and write.lineno < c.lineno < read.lineno]
    if any(context.collectives.reached([call], scope) for call in inside):
        return
    if context.ranks.depends(path, scope):
        text = f"`{context.text(path)}` is written by some ranks only, and every rank reads its own"
    else:
        text = f"`{context.text(path)}` is written by one rank; the others read it without waiting"
    yield Hit(read, text, also=((context.module.file, write.lineno, context.module.line(write.lineno)),))
