"""Functions that the tests call on several workers. Imported by the tests as a local module, so it travels with them."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import phalanx


@phalanx.function(workers=4, framework="torch", grace=3)
def train(mode: str) -> dict[str, Any]:
    """A job that really communicates, and breaks as it is told."""
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    if mode == "before" and rank == 2:
        raise KeyError("early")
    dist.init_process_group("gloo")
    total = torch.ones(1) * rank
    dist.all_reduce(total)
    print(f"sum {total.item():g}", flush=True)
    if rank == 2:
        if mode == "raise":
            raise ValueError("bad sample 17")
        if mode == "kill":
            os.kill(os.getpid(), 9)
    if rank == 3 and mode == "vanish":
        os.kill(os.getppid(), 9)  # the agent: with it go its ranks
    if mode == "two" and rank in (1, 2):
        raise ValueError("both are bad")
    if mode == "stall" and rank == 1:
        time.sleep(3600)
    dist.barrier()
    dist.destroy_process_group()
    if mode == "after" and rank == 2:
        raise LookupError("too late")
    if mode == "after":
        time.sleep(1)
    return {"rank": rank, "sum": total.item(), "node": os.environ["GROUP_RANK"], "local": os.environ["LOCAL_RANK"]}


def place(*wanted: str) -> dict[str, str | None]:
    """What a rank finds in its environment."""
    return {name: os.environ.get(name) for name in wanted}


def shout(lines: int) -> int:
    """Many lines on both streams."""
    rank = int(os.environ["RANK"])
    for number in range(lines):
        print(f"rank {rank} line {number}", file=sys.stderr if number % 2 else sys.stdout)
    return lines
