"""How long a checkpoint blocks the training: ours against PyTorch's own asynchronous save of the same state, in turns.

    python bench/checkpoint_blocked.py [--parameters 4000000] [--rounds 7]

Both copy the state in the calling thread and write in another; only the storage differs (safetensors and JSON, moved into
place when whole, against PyTorch's files with a pickled index). Printed are medians of processor and wall milliseconds until
the call returns, and until all is written.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.distributed.checkpoint import FileSystemWriter, async_save

from phalanx.replay.inside.phalanx_record.checkpoints import save_async
from phalanx.replay.inside.phalanx_record.state import State


def ours(tensors: dict[str, torch.Tensor], folder: Path, number: int) -> Callable[[], object]:
    done = threading.Event()
    save_async(
        State(number, tensors, {}, {}), str(folder), lambda *_: done.set(), lambda error: print(error) or done.set()
    )
    return done.wait


def theirs(tensors: dict[str, torch.Tensor], folder: Path, number: int) -> Callable[[], object]:
    future = async_save(dict(tensors), storage_writer=FileSystemWriter(folder / f"theirs-{number}"), no_dist=True)
    return getattr(future, "upload_completion", future).result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    wish = parser.parse_args()
    each = wish.parameters // 16
    names = ("model0.{}", "optimizer0.{}.exp_avg", "optimizer0.{}.exp_avg_sq")  # as Adam has it
    tensors = {name.format(number): torch.randn(each) for number in range(16) for name in names}
    found: dict[str, list[tuple[float, float, float]]] = {"ours": [], "PyTorch's": []}
    with tempfile.TemporaryDirectory() as work:
        for number in range(wish.rounds + 1):
            turn = (("ours", ours), ("PyTorch's", theirs))
            for who, save in turn if number % 2 else reversed(turn):  # the first has the memory that the last gave back
                cpu, wall = time.thread_time(), time.perf_counter()
                finish = save(tensors, Path(work), number)
                blocked = time.thread_time() - cpu, time.perf_counter() - wall
                finish()
                if number:  # the first round warms up
                    found[who].append((*blocked, time.perf_counter() - wall))
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    print(f"state of {size / 1e6:.0f} MB, medians of {wish.rounds} rounds")
    for who, rows in found.items():
        cpu, wall, whole = (statistics.median(column) * 1e3 for column in zip(*rows, strict=True))
        print(
            f"{who:>10}: blocked {cpu:.1f} ms of processor time, {wall:.1f} ms by the clock; written after {whole:.0f} ms"
        )


if __name__ == "__main__":
    main()
