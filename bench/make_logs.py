"""Writes realistic logs of a job of many ranks with one fault in it, one file a rank, of any total size.

python bench/make_logs.py bench/data/1g --gib 1 --ranks 256
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

CULPRIT = 137
_INFO = (
    "node{node}:{pid}:{tid} [{device}] NCCL INFO Channel {a:02d}/0 : {rank}[{device}] -> {peer}[{peer_device}] [send] via NET/IB/{b}/GDRDMA",
    "node{node}:{pid}:{tid} [{device}] NCCL INFO Connected all rings",
    "node{node}:{pid}:{tid} [{device}] NCCL INFO comm 0x{pid:x}a0 rank {rank} nranks {ranks} cudaDev {device} busId {b}000 - Init COMPLETE",
)
_STEP = (
    "2024-05-{day:02d} {hour:02d}:{minute:02d}:{second:02d},{ms:03d} - INFO - iteration {step:>8}/ 500000 | consumed samples: {samples:>12} | "
    "elapsed time per iteration (ms): {elapsed:.1f} | learning rate: {rate:.3E} | global batch size: 1024 | lm loss: {loss:.6E} | "
    "loss scale: 1.0 | grad norm: {norm:.3f} | number of skipped iterations: 0 | number of nan iterations: 0 |"
)
_NOISE = (
    "/opt/venv/lib/python3.11/site-packages/torch/utils/checkpoint.py:295: FutureWarning: `torch.cpu.amp.autocast(args...)` is deprecated.",
    "  with torch.enable_grad(), torch.cuda.amp.autocast(**ctx.gpu_autocast_kwargs):",
    "saved checkpoint at iteration {step} to /data/checkpoints in {elapsed:.1f} ms, 0 errors",
    "validation error rate {norm:.3f} at iteration {step}",
)
_OOM = """\
[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "/home/user/train.py", line 212, in <module>
[rank{rank}]:     train(args)
[rank{rank}]:   File "/home/user/train.py", line 174, in train
[rank{rank}]:     loss = model(batch)
[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.34 GiB. GPU {device} has a total capacity of 79.15 GiB of which 1.20 GiB is free.
"""
_VICTIM = """\
[rank{rank}]:[E506 10:00:00.000000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=88123, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600025 milliseconds before timing out.
[rank{rank}]:[E506 10:00:00.000000001 ProcessGroupNCCL.cpp:621] [Rank {rank}] To avoid data inconsistency, we are taking the entire process down.
"""


def write_logs(folder: Path, total_bytes: int, ranks: int, seed: int = 0) -> None:
    """Write the logs; the same arguments give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    share = total_bytes // ranks
    generator = random.Random(seed)
    # A block of lines is made once and repeated with other step numbers: drawing every line anew would take hours.
    block = [_line(generator, 7, ranks) for _ in range(4000)]
    for rank in range(ranks):
        with (folder / f"rank{rank}.log").open("w", encoding="utf-8") as file:
            for number in range(120):  # libraries talk while the job starts
                file.write(_INFO[number % len(_INFO)].format(**_values(generator, rank, ranks)) + "\n")
            written, start = file.tell(), rank % len(block)
            while written < share:
                lines = block[start:] + block[:start]
                text = "\n".join(lines)[: share - written].rsplit("\n", 1)[0] + "\n"
                file.write(text)
                written += len(text)
                if len(text) < 500:
                    break
            last = _OOM if rank == CULPRIT % ranks else _VICTIM
            file.write(last.format(rank=rank, device=rank % 8))


def _values(generator: random.Random, rank: int, ranks: int) -> dict[str, object]:
    step = generator.randrange(500_000)
    return {
        "node": rank // 8, "pid": 4000 + rank, "tid": 9000 + rank, "device": rank % 8, "rank": rank, "ranks": ranks,
        "peer": (rank + 1) % ranks, "peer_device": (rank + 1) % 8, "a": generator.randrange(16), "b": generator.randrange(8),
        "day": generator.randrange(1, 28), "hour": generator.randrange(24), "minute": generator.randrange(60),
        "second": generator.randrange(60), "ms": generator.randrange(1000), "step": step, "samples": step * 1024,
        "elapsed": generator.uniform(400, 900), "rate": generator.uniform(1e-5, 1e-3), "loss": generator.uniform(1.5, 9.0),
        "norm": generator.uniform(0.1, 3.0),
    }  # fmt: skip


def _line(generator: random.Random, rank: int, ranks: int) -> str:
    kind = generator.random()
    template = _STEP if kind < 0.95 else generator.choice(_NOISE)
    return template.format(**_values(generator, rank, ranks))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--ranks", type=int, default=256)
    arguments = parser.parse_args()
    write_logs(arguments.folder, int(arguments.gib * 2**30), arguments.ranks)
