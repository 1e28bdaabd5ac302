"""A real Gloo job with one fault; a side thread writes the rank's flight recorder while the job stands still.

Without a fault (`running`) the ranks train on while they write it, each at another moment, and once more when they are done.

RANK=0 WORLD_SIZE=4 … python gloo_job.py FAULT CULPRIT FOLDER
"""

from __future__ import annotations

import datetime
import os
import sys
import threading
import time
from pathlib import Path

os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "2000")

import torch
import torch.distributed as dist

FAULT, CULPRIT, FOLDER = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
STANDING = FOLDER.with_suffix(".state")  # where each rank leaves a file when it comes to the faulty step
BROKEN = RANK == CULPRIT


def watch() -> None:
    """Dump when every rank has come to the faulty step and had time to get stuck in it; leave together."""
    expected = WORLD - (FAULT == "dead")  # who is dead writes nothing
    wait_for(lambda: len(list(STANDING.iterdir())) == WORLD)
    time.sleep(3)
    data = torch._C._distributed_c10d._dump_fr_trace()
    part = FOLDER / f"part{RANK}"
    part.write_bytes(data)
    part.rename(FOLDER / f"nccl_trace_rank_{RANK}")
    wait_for(lambda: len(list(FOLDER.glob("nccl_trace_rank_*"))) == expected)
    os._exit(0)


def watch_running() -> None:
    """Dump while the job runs, at a moment of the rank's own."""
    time.sleep(0.05 + 0.13 * RANK)
    write_dump(FOLDER / "running")


def write_dump(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"nccl_trace_rank_{RANK}").write_bytes(torch._C._distributed_c10d._dump_fr_trace())


def run_on(tensor: torch.Tensor) -> None:
    """Steps until every rank has written its dump; all leave after the same one. Rank 0 is a little slower than the others."""
    threading.Thread(target=watch_running, daemon=True).start()
    goes_on = torch.ones(1)
    while goes_on.item():
        step(tensor)
        time.sleep(0.01 if RANK == 0 else 0.001)
        goes_on = torch.tensor([float(not (FOLDER / "running" / f"nccl_trace_rank_{RANK}").exists())])
        dist.all_reduce(goes_on)
    write_dump(FOLDER / "over")
    dist.barrier()
    dist.destroy_process_group()


def wait_for(condition) -> None:  # type: ignore[no-untyped-def]
    stop = time.monotonic() + 300
    while not condition() and time.monotonic() < stop:
        time.sleep(0.05)


def step(tensor: torch.Tensor) -> None:
    dist.all_reduce(tensor)
    dist.broadcast(tensor, src=1)
    dist.all_gather([torch.empty_like(tensor) for _ in range(WORLD)], tensor)
    if RANK == 0:
        dist.send(tensor, dst=1)
    if RANK == 1:
        dist.recv(tensor, src=0)


def faulty_step(tensor: torch.Tensor, pair: dist.ProcessGroup) -> None:
    if FAULT == "missing" and BROKEN:
        time.sleep(300)
    elif FAULT == "dead" and BROKEN:
        os._exit(1)
    elif FAULT == "skipped" and BROKEN:
        pass
    elif FAULT == "order" and BROKEN:
        dist.broadcast(tensor, src=1)
        dist.all_reduce(tensor)
    elif FAULT == "shape" and BROKEN:
        dist.all_reduce(torch.ones(3))
    elif FAULT == "dtype" and BROKEN:
        dist.all_reduce(torch.ones(4, dtype=torch.float64))
    elif FAULT == "p2p" and BROKEN:
        dist.recv(tensor, src=(RANK + 1) % WORLD)
    elif FAULT == "group" and BROKEN:
        dist.all_reduce(tensor, group=pair)
    else:
        dist.all_reduce(tensor)
        dist.broadcast(tensor, src=1)
    dist.barrier()


def main() -> None:
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=300))
    if FAULT == "running":
        run_on(torch.ones(4))
        return
    pair = dist.new_group(sorted({CULPRIT, (CULPRIT + 1) % WORLD}))
    threading.Thread(target=watch, daemon=True).start()
    tensor = torch.ones(4)
    if RANK in (CULPRIT, (CULPRIT + 1) % WORLD):
        dist.all_reduce(tensor, group=pair)
    for _ in range(3):
        step(tensor)
    (STANDING / str(RANK)).touch()
    if FAULT != "none":
        try:
            faulty_step(tensor, pair)
        except RuntimeError as error:
            print(f"rank {RANK}: {error}", flush=True)
    time.sleep(300)


main()
