"""Horovod processes choose their GPU by the global rank.

## What it does
Finds `hvd.rank()` where a device is chosen.

## Why is this bad?
On the second host ranks begin at the number of GPUs of the first: the device does not exist.

## Example
```diff
 import horovod.tensorflow as hvd
 import tensorflow as tf

 hvd.init()
 gpus = tf.config.list_physical_devices("GPU")
-tf.config.set_visible_devices(gpus[hvd.rank()], "GPU")
+tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LHV002",
    symptom="prep.device-error",
    cause="device-by-global-rank",
    pattern="fix-device-assignment",
    do="Use `hvd.local_rank()`.",
    needs=("horovod",),
)


def check(context: Context) -> Iterator[Hit]:
    """Device functions of TensorFlow; those of PyTorch are LPT022's."""
    for call, scope in context.calls(
        "tensorflow.config.experimental.set_visible_devices", "tensorflow.config.set_visible_devices"
    ):
        parts = [item for item in ast.walk(call) if isinstance(item, (ast.Call, ast.Name)) and item is not call]
        if any(context.ranks.kind(item, scope) == "global" for item in parts) and "%" not in ast.unparse(call):
            yield Hit(call, "The GPU is chosen by `hvd.rank()`, the rank in the whole job")
    for node, scope in context.module.nodes[ast.Assign]:
        target = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""
        calls = (
            [item for item in ast.walk(node) if isinstance(item, ast.Call)]
            if target.endswith("visible_device_list")
            else []
        )
        if any(context.name(item.func, scope) in _RANKS for item in calls):
            yield Hit(node, "The GPU is chosen by `hvd.rank()`, the rank in the whole job")


_RANKS = ("horovod.torch.rank", "horovod.tensorflow.rank", "horovod.keras.rank")
