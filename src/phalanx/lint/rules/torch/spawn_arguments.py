"""`mp.spawn` gives a function more or fewer arguments than it takes.

## What it does
Compares the tuple `args` with the parameters of the function, whose first one is the process's number.

## Why is this bad?
Each process fails with TypeError; often the rank was put into `args` too, which `spawn` adds by itself.

## Example
```diff
 import torch.multiprocessing as mp


 def worker(rank, world_size):
     print(rank, world_size)


 if __name__ == "__main__":
-    mp.spawn(worker, args=(0, 2), nprocs=2)
+    mp.spawn(worker, args=(2,), nprocs=2)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.patterns import keyword
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.syntax import argument

RULE = Rule(
    code="LPT072",
    symptom="prep.other",
    cause="spawn-argument-count",
    pattern="fix-distributed-api-usage",
    do="Give `args` what comes after the process's number, as a tuple.",
    needs=("spawn",),
)


def check(context: Context) -> Iterator[Hit]:
    """Functions of the project with a plain list of parameters."""
    for call, scope in context.calls("torch.multiprocessing.spawn"):
        given, packed = call.args[0] if call.args else keyword(call, "fn"), argument(call, 1, "args")
        function = context.inference.symbol(given, scope) if given is not None else None
        node = function.node if function is not None else None
        if (
            not isinstance(node, ast.FunctionDef)
            or node.args.vararg
            or not (packed is None or isinstance(packed, ast.Tuple))
        ):
            continue
        count = 1 + (len(packed.elts) if isinstance(packed, ast.Tuple) else 0)
        if isinstance(packed, ast.Tuple) and any(isinstance(item, ast.Starred) for item in packed.elts):
            continue
        most = len(node.args.args) + len(node.args.posonlyargs)
        least = most - len(node.args.defaults)
        if not least <= count <= most:
            yield Hit(
                call,
                f"`{node.name}` takes {most} arguments, but `spawn` gives it {count}: the process's number and {count - 1} of `args`",
            )
