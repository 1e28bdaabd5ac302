"""All Horovod processes compute on the first GPU.

## What it does
Finds Horovod programs that use `.cuda()` although nothing chooses the device by `hvd.local_rank()`.

## Why is this bad?
Every process takes GPU 0: memory runs out there while the other GPUs idle.

## Example
```diff
 import torch
 import horovod.torch as hvd

 hvd.init()
+torch.cuda.set_device(hvd.local_rank())
 model = torch.nn.Linear(4, 1).cuda()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
 optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
 hvd.broadcast_parameters(model.state_dict(), root_rank=0)
 hvd.broadcast_optimizer_state(optimizer, root_rank=0)
 for step in range(10):
     optimizer.zero_grad()
     model(torch.randn(8, 4).cuda()).sum().backward()
     optimizer.step()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule
from phalanx.lint.tree import Scope

RULE = Rule(
    code="LHV010",
    symptom="perf.unexpected-parallelization-or-device",
    cause="all-ranks-on-one-gpu",
    pattern="fix-device-assignment",
    do="Call `torch.cuda.set_device(hvd.local_rank())` after `hvd.init()`.",
    needs=("horovod",),
)

_PINS = ("local_rank", "set_device", "CUDA_VISIBLE_DEVICES", "device_count", "set_visible_devices")


_INIT = ("horovod.torch.init", "horovod.tensorflow.init", "horovod.keras.init")
_GPUS = ("tensorflow.config.list_physical_devices", "tensorflow.config.experimental.list_physical_devices")


def check(context: Context) -> Iterator[Hit]:
    """Programs that initialise Horovod, use GPUs, and never mention a device of their own."""
    if not context.calls(*_INIT) or context.mentions(*_PINS) or context.has_unknown_imports:
        return
    moves = [c for c, s in context.methods("cuda") if not c.args and not context.name(c.func, s).startswith("torch.")]
    moves += [c for c, s in context.calls("torch.device") if _is_plain_gpu(c, context, s)]
    lists = [c for c, s in context.calls(*_GPUS) if c.args and context.constant(c.args[0], s) == "GPU"]
    for call in [*moves, *lists][:1]:
        do = (
            ""
            if moves
            else "Show each process its own: `tf.config.set_visible_devices(gpus[hvd.local_rank()], 'GPU')`."
        )
        what = "uses GPU 0" if moves else "takes all GPUs of the host"
        yield Hit(call, f"Every process {what}: nothing chooses the device of the process", do=do)


def _is_plain_gpu(call: ast.Call, context: Context, scope: Scope) -> bool:
    """`torch.device("cuda")`, or that under a condition."""
    made = [context.constant(item, at) for item, at in context.origins(call.args[0], scope)] if call.args else []
    return len(call.args) == 1 and "cuda" in made
