"""A fixed GPU in `tf.device`, without asking what there is.

## What it does
Finds `/GPU:0` given to `tf.device` or a strategy in scripts that switch soft placement off and never list the
devices.

## Why is this bad?
On a machine without that GPU the operation cannot be placed and the script fails.

## Example
```diff
 import tensorflow as tf

 tf.config.set_soft_device_placement(False)
-with tf.device("/GPU:0"):
+with tf.device("/GPU:0" if tf.config.list_physical_devices("GPU") else "/CPU:0"):
     weights = tf.Variable(tf.zeros((4, 1)))
```
"""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LTF015",
    symptom="prep.device-error",
    cause="no-cuda-device",
    pattern="fix-device-assignment",
    do="Choose the device from `tf.config.list_physical_devices('GPU')`.",
    needs=("set_soft_device_placement",),
    is_distributed=False,
)


def check(context: Context) -> Iterator[Hit]:
    """Literal GPUs under hard placement."""
    hard = [
        c
        for c, s in context.calls("tensorflow.config.set_soft_device_placement")
        if c.args and context.constant(c.args[0], s) is False
    ]
    if not hard or context.mentions("list_physical_devices", "list_logical_devices", "is_gpu_available"):
        return
    for call, scope in context.calls("tensorflow.device"):
        device = context.constant(call.args[0], scope) if call.args else None
        if isinstance(device, str) and "gpu" in device.lower():
            yield Hit(call, f"`{device}` is required, and nothing asks whether it is there")
