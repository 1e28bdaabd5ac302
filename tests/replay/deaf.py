"""A job whose second rank dies; the first one then tries every kind of call again and says which of them told it. Not a test: tests run it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as functional

signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher ends the survivors, too
dist.init_process_group("gloo", timeout=timedelta(seconds=60))
rank, world = dist.get_rank(), dist.group.WORLD
model = nn.Linear(64, 64)
ddp = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def some() -> torch.Tensor:
    return torch.ones(5000)


def train() -> None:
    optimizer.zero_grad()
    ddp(torch.ones(8, 64)).sum().backward()


@torch.compile(backend="aot_eager")
def compiled(given: torch.Tensor) -> torch.Tensor:
    return functional.wait_tensor(functional.all_reduce(given, "sum", world)) + 1


def in_flight() -> None:
    works = [dist.all_reduce(some(), async_op=True) for _ in range(3)]
    works.reverse()
    for work in works:
        work.wait()


KINDS: dict[str, Callable[[], Any]] = {
    "ddp": train,
    "all-reduce": lambda: dist.all_reduce(some()),
    "in flight": in_flight,
    "future": lambda: dist.all_reduce(some(), async_op=True).get_future().wait(),
    "all-gather": lambda: dist.all_gather_into_tensor(torch.zeros(10000), some()),
    "reduce-scatter": lambda: dist.reduce_scatter_tensor(torch.zeros(2500), some(), async_op=True).wait(),
    "receive": lambda: dist.recv(some(), 1) if rank == 0 else dist.send(some(), 0),
    "direct": lambda: world.allreduce([some()]).wait(),
    "functional": lambda: functional.wait_tensor(functional.all_reduce(some(), "sum", world)),
    "functional all-gather": lambda: functional.wait_tensor(functional.all_gather_tensor(some(), 0, world)),
    "functional reduce-scatter": lambda: functional.wait_tensor(
        functional.reduce_scatter_tensor(some(), "sum", 0, world)
    ),
    "functional, not waited for": lambda: functional.all_reduce(some(), "sum", world) + 0,
    "compiled": lambda: compiled(some()),
}
for _ in range(4):
    for call in KINDS.values():
        call()
    optimizer.step()
if rank == 1:
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)
for name, call in KINDS.items():
    try:
        call()
        print(f"{name}: deaf", flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}", flush=True)
print("all tried", flush=True)
os._exit(0)
