"""What a call costs more in processor time with the light recorder, in turns with blocks without it: 128 KiB, 100 calls a block, rank 0.

python -m phalanx.replay.kernel && phalanx run --record=light -n 2 bench/record_call.py
PHALANX_NO_CACHE=1 phalanx run --record=light -n 2 bench/record_call.py        # without the compiled kernel
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

ROUNDS, CALLS, ELEMENTS = 13, 100, 32768

dist.init_process_group("gloo")
recording = sys.modules["phalanx_record.recording"]
recorder = recording.current[0]
part, result = torch.ones(ELEMENTS), torch.empty(ELEMENTS)
whole = torch.ones(ELEMENTS * dist.get_world_size())


def block(call: Callable[[], object]) -> float:
    """Microseconds of processor time of a call, of all threads of the rank."""
    dist.barrier()
    began = time.process_time()
    for _ in range(CALLS):
        call()
    return (time.process_time() - began) / CALLS * 1e6


def switch(is_on: bool) -> None:
    recording.dispatch.step_aside()
    recorder.is_stopped = not is_on
    if is_on:
        recorder.stand_between()


kinds: dict[str, Callable[[], object]] = {
    "all-reduce": lambda: dist.all_reduce(part),
    "all-gather": lambda: dist.all_gather_into_tensor(whole, part),
    "reduce-scatter": lambda: dist.reduce_scatter_tensor(result, whole),
}
for name, call in kinds.items():
    without, more = [], []
    for _ in range(ROUNDS):
        switch(False)
        without.append(block(call))
        switch(True)
        more.append(block(call) - without[-1])
    more.sort()
    if dist.get_rank() == 0:
        print(
            f"{name}: {statistics.median(without):.0f} µs without, {statistics.median(more):+.0f} µs ({more[3]:+.0f} to {more[-4]:+.0f}) "
            f"{'compiled' if recorder._quick is not None else 'Python'}",
            flush=True,
        )
dist.destroy_process_group()
