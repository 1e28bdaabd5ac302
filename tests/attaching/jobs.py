"""Starts training jobs as people start them, without Phalanx, and attaches to them as a user does."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

import phalanx

SOURCE = Path(phalanx.__file__).parent.parent
# Ranks train until they reach the fault that the first argument names; then `ready<rank>` appears.
TRAIN = """\
import os, sys, threading, time
import torch
import torch.distributed as dist

fault = sys.argv[1]


class Files(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        if fault == "data" and rank == 1 and index > 20:
            with open("fifo") as file:  # nobody ever writes into it
                file.read()
        return torch.randn(8)


def evaluate():
    time.sleep(600)


def take(lock):
    with lock:
        pass


def hold(lock):
    with lock:
        time.sleep(600)


def save():
    with open("checkpoint", "wb") as file:
        end = time.time() + 120
        while time.time() < end:
            file.seek(0)
            file.write(os.urandom(1 << 22))
            file.flush()


def train():
    first, second = (dist.new_group([0, 1]), dist.new_group([0, 1])) if fault == "crossed" else (None, None)
    loader = torch.utils.data.DataLoader(Files(), batch_size=4, num_workers=1 if fault == "data" else 0)
    weights = torch.zeros(8)
    step = 0
    while True:
        for batch in loader:
            step += 1
            if step == 5:
                open(f"ready{rank}", "w").close()
                if fault == "sleep" and rank == 1:
                    evaluate()
                if fault == "uneven" and rank == 1:
                    dist.barrier()
                if fault == "lock" and rank == 1:
                    lock = threading.Lock()
                    threading.Thread(target=hold, args=(lock,), daemon=True).start()
                    time.sleep(0.2)
                    take(lock)
                if fault == "checkpoint":
                    if rank == 0:
                        save()
                    dist.barrier()
                if fault == "gone" and rank == 1:
                    os._exit(0)
            gradient = batch.mean(0)
            dist.all_reduce(gradient)
            weights -= gradient
            if fault == "slow" and rank == 1:
                time.sleep(1.5)
            time.sleep(0.02)


def main(number=None):
    global rank
    if number is not None:
        os.environ.update(RANK=str(number), WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[2])
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    train()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        torch.multiprocessing.spawn(main, nprocs=3)
    else:
        main()
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def job(folder: Path, commands: Sequence[Sequence[str]], variables: Sequence[dict[str, str]]) -> Iterator[list[int]]:
    """Start the processes in the folder; end them and all their children afterwards."""
    (folder / "train.py").write_text(TRAIN)
    if not (folder / "fifo").exists():
        os.mkfifo(folder / "fifo")
    started = [
        subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=(folder / f"out{number}").open("wb"),
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TEST_JOB": str(folder), **extra},
        )
        for number, (command, extra) in enumerate(zip(commands, variables, strict=True))
    ]
    try:
        yield [one.pid for one in started]
    finally:
        for process in psutil.process_iter():
            try:
                if process.environ().get("TEST_JOB") == str(folder):
                    process.send_signal(signal.SIGKILL)
            except psutil.Error:
                continue
        for one in started:
            one.wait(30)


def by_hand(folder: Path, fault: str, size: int = 3, more: Mapping[str, str] | None = None) -> Any:
    """One process a rank, each with the variables that PyTorch reads."""
    port = str(free_port())
    shared = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "LOCAL_WORLD_SIZE": str(size)}
    ranks = [{**(more or {}), **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(size)]
    return job(folder, [[sys.executable, "train.py", fault]] * size, ranks)


def by_torchrun(folder: Path, fault: str, size: int = 3) -> Any:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)]
    return job(folder, [[*command, "train.py", fault]], [{}])


def by_spawn(folder: Path, fault: str) -> Any:
    return job(folder, [[sys.executable, "train.py", fault, str(free_port())]], [{}])


def wait_until_ready(folder: Path, ranks: Sequence[int], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not all((folder / f"ready{rank}").exists() for rank in ranks):
        assert time.monotonic() < deadline, (folder / "out0").read_text()
        time.sleep(0.1)


def attach(*arguments: str, through: Sequence[str] = ()) -> tuple[dict[str, Any], int, str]:
    """The report, the status and what was said beside it; `through` is a command that starts it."""
    done = subprocess.run(
        [*through, sys.executable, "-m", "phalanx", "attach", "--format", "json", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    return json.loads(done.stdout) if done.stdout else {}, done.returncode, done.stderr
