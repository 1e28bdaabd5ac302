"""TF_CONFIG is set after the strategy was made.

## What it does
Finds assignments of TF_CONFIG below the construction of a multi-worker strategy.

## Why is this bad?
The strategy reads TF_CONFIG when it is constructed. Set later, every worker trains alone.

## Example
```diff
 import json
 import os

 import tensorflow as tf

+os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}})
 strategy = tf.distribute.MultiWorkerMirroredStrategy()
-os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}})
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.flow import sites
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LTF003",
    symptom="comm.setup-failure",
    cause="tf-config-set-too-late",
    pattern="fix-communication-configuration",
    do="Set TF_CONFIG before the strategy is constructed, best outside of the script.",
    needs=("TF_CONFIG",),
)

_STRATEGIES = ("tensorflow.distribute.MultiWorkerMirroredStrategy", "tensorflow.distribute.ParameterServerStrategy", "tensorflow.distribute.cluster_resolver.TFConfigClusterResolver")  # fmt: skip


def check(context: Context) -> Iterator[Hit]:
    """Assignments behind a construction in one scope, themselves or in a function that is called there."""
    made = list(sites(context, *_STRATEGIES))
    for node, scope in context.module.nodes[ast.Assign] if made else ():
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(target, ast.Subscript) or context.name(target.value, scope) != "os.environ":
            continue
        if context.constant(target.slice, scope) != "TF_CONFIG":
            continue
        calls = context.inference.callers(scope) if scope.is_function else []
        for place, where in [(node, scope), *calls]:
            line = getattr(place, "lineno", 0)
            first = next((call for call, at in made if at is where and call.lineno < line), None)
            if first is not None and not context.loops_around(place):
                yield Hit(place, f"TF_CONFIG is set after the strategy of line {first.lineno} has read it")
