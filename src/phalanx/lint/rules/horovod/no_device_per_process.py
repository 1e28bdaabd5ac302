"""All Horovod processes compute on the first GPU.

## What it does
Finds Horovod programs that use `.cuda()` although nothing chooses the device by `hvd.local_rank()`.

## Why is this bad?
Every process takes GPU 0: memory runs out there while the other GPUs idle.

## Example
```python
import torch
import horovod.torch as hvd

hvd.init()
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
Use instead:
```python
import torch
import horovod.torch as hvd

hvd.init()
torch.cuda.set_device(hvd.local_rank())
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

from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LHV010",
    symptom="perf.unexpected-parallelization-or-device",
    cause="all-ranks-on-one-gpu",
    pattern="fix-device-assignment",
    why="Every process takes GPU 0: memory runs out there while the other GPUs idle.",
    do="Call `torch.cuda.set_device(hvd.local_rank())` after `hvd.init()`.",
    needs=("horovod",),
)

_PINS = ("local_rank", "set_device", "CUDA_VISIBLE_DEVICES", "device_count", "set_visible_devices")


def check(context: Context) -> Iterator[Hit]:
    """Programs that initialise Horovod for PyTorch and never mention a device of their own."""
    if not context.calls("horovod.torch.init") or context.mentions(*_PINS) or context.has_unknown_imports:
        return
    for call, scope in context.methods("cuda"):
        if not call.args and not context.name(call.func, scope).startswith("torch."):
            yield Hit(call, "Every process uses GPU 0: nothing chooses the device of the process")
            return
