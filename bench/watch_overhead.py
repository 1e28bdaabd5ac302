"""What the watch costs a job: processor time of a step with and without it, and of the watch itself. Interleaved.

python bench/watch_overhead.py [--ranks 2] [--rounds 3] [--steps 300] [--width 512]

Processor time, not wall time: other programs on the machine do not change it much. The watch's own thread and the
supervisor's looks are measured apart as well, because they are far below the noise of the steps.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from phalanx.run.observer import Setup
from phalanx.run.watch import Watch

JOB = """
import json, os, sys, threading, time
import torch
import torch.distributed as dist

def spent(native):
    with open(f"/proc/self/task/{native}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9

dist.init_process_group("gloo")
width, steps = int(sys.argv[1]), int(sys.argv[2])
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(4)]))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
batch = torch.randn(32, width)

def step():
    optimizer.zero_grad(set_to_none=True)
    model(batch).square().mean().backward()
    optimizer.step()

for _ in range(20):
    step()
watch = [thread.native_id for thread in threading.enumerate() if thread.name == "phalanx-watch"]
began, wall, own = time.process_time(), time.monotonic(), sum(map(spent, watch))
for _ in range(steps):
    step()
taken, passed, own = time.process_time() - began, time.monotonic() - wall, sum(map(spent, watch)) - own
print(json.dumps({"step_us": 1e6 * taken / steps, "seconds": passed, "watch_cpu": own}), flush=True)
dist.barrier()
"""


def run(options: argparse.Namespace, inside: bool) -> tuple[list[dict[str, float]], float]:
    """One job; what its ranks measured, and the share of one processor that the supervisor's looks took."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "train.py").write_text(JOB)
        watch = Watch(Setup(folder / "attempt0", options.ranks, "torch", ("train.py",), inside=inside))
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
        ranks = {}
        for rank in range(options.ranks):
            (folder / "attempt0" / f"rank{rank}").mkdir(parents=True)
            told = {"RANK": rank, "WORLD_SIZE": options.ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            given = {**os.environ, **{key: str(value) for key, value in told.items()}, "OMP_NUM_THREADS": "1"}
            command = [sys.executable, "train.py", str(options.width), str(options.steps)]
            ranks[rank] = subprocess.Popen(
                command, cwd=folder, env={**given, **watch.environment(rank)}, stdout=subprocess.PIPE
            )
        watch.started({rank: process.pid for rank, process in ranks.items()})
        began, looked = time.monotonic(), 0.0
        while any(process.poll() is None for process in ranks.values()):
            before = time.thread_time()
            watch.tick()
            looked += time.thread_time() - before
            time.sleep(0.5)
        passed = time.monotonic() - began
        watch.close()
        found = [json.loads(process.communicate()[0].splitlines()[-1]) for process in ranks.values()]
        return found, looked / passed


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--width", type=int, default=512)
    options = parser.parse_args()
    steps: dict[bool, list[float]] = {True: [], False: []}
    thread, looks = [], []
    for number in range(options.rounds):
        for inside in (False, True) if number % 2 else (True, False):
            found, looked = run(options, inside)
            steps[inside] += [one["step_us"] for one in found]
            if inside:
                thread += [one["watch_cpu"] / one["seconds"] for one in found]
                looks.append(looked)
    without, within = median(steps[False]), median(steps[True])
    print(f"{options.ranks} ranks, width {options.width}, {options.rounds} rounds of {options.steps} steps")
    print(
        f"processor time of a step: {without:.0f} us without, {within:.0f} us with the watch inside ({within / without - 1:+.2%})"
    )
    print(f"the watch's own thread: {median(thread):.4%} of a processor in each rank")
    print(f"the supervisor's looks, all ranks: {median(looks):.4%} of a processor")


if __name__ == "__main__":
    main()
