"""What the watch costs a job: processor time for each beat inside a rank, as a share of the job's, and of the outside looks.

python bench/watch_overhead.py [--ranks 2] [--rounds 3] [--blocks 12] [--steps 60] [--width 256]

One beat costs too little to be seen beside the noise of two runs. So within one run blocks of steps alternate between the
usual four beats a second and a hundred: what a step costs more in the quick blocks, divided by the beats more, is the price
of a beat with everything that it brings, the handing over of the interpreter's lock too. Processor time, not wall time.
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
width, steps, blocks = map(int, sys.argv[1:4])
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(4)]))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
batch = torch.randn(32, width)

def step():
    optimizer.zero_grad(set_to_none=True)
    model(batch).square().mean().backward()
    optimizer.step()

for _ in range(20):
    step()
inside = sys.modules["phalanx_inside"]
watch = [thread.native_id for thread in threading.enumerate() if thread.name == "phalanx-watch"]
totals = {0.25: [0.0, 0, 0.0, 0.0], 0.01: [0.0, 0, 0.0, 0.0]}  # by pause: processor time, steps, wall time, watch's own
for block in range(2 * blocks):
    inside.BEAT_S = 0.01 if block % 2 else 0.25
    for _ in range(5):
        step()
    time.sleep(0.3)  # until the thread has taken the new pause
    began, wall, own = time.process_time(), time.monotonic(), sum(map(spent, watch))
    for _ in range(steps):
        step()
    total = totals[inside.BEAT_S]
    total[0] += time.process_time() - began
    total[1] += steps
    total[2] += time.monotonic() - wall
    total[3] += sum(map(spent, watch)) - own
print(json.dumps({str(pause): total for pause, total in totals.items()}), flush=True)
dist.barrier()
"""


def run(options: argparse.Namespace) -> tuple[list[dict[str, list[float]]], float]:
    """One job; what its ranks measured, and the share of one processor that the supervisor's looks took."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "train.py").write_text(JOB)
        watch = Watch(Setup(folder / "attempt0", options.ranks, "torch", ("train.py",)))
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
        ranks = {}
        for rank in range(options.ranks):
            (folder / "attempt0" / f"rank{rank}").mkdir(parents=True)
            told = {"RANK": rank, "WORLD_SIZE": options.ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            given = {**os.environ, **{key: str(value) for key, value in told.items()}, "OMP_NUM_THREADS": "1"}
            command = [sys.executable, "train.py", *map(str, (options.width, options.steps, options.blocks))]
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
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--width", type=int, default=256)
    options = parser.parse_args()
    prices, shares, own, looks = [], [], [], []
    for _ in range(options.rounds):
        found, looked = run(options)
        looks.append(looked)
        for one in found:
            usual, quick = one["0.25"], one["0.01"]
            beats = quick[2] / 0.01 / quick[1] - usual[2] / 0.25 / usual[1]  # more, for each step
            price = (quick[0] / quick[1] - usual[0] / usual[1]) / beats
            prices.append(1e6 * price)
            shares.append(price / 0.25)
            own.append(usual[3] / usual[2])
    print(
        f"{options.ranks} ranks, width {options.width}, {options.rounds} rounds of 2 x {options.blocks} blocks of {options.steps} steps"
    )
    print(f"price of a beat: {median(prices):.0f} us of processor time ({min(prices):.0f} to {max(prices):.0f})")
    print(f"four such beats a second, all caches warm: {median(shares):.3%} of a processor in each rank")
    print(f"the watch's thread as it really ran: {median(own):.3%} of a processor in each rank")
    print(f"the supervisor's looks, all ranks: {median(looks):.3%} of one processor")


if __name__ == "__main__":
    main()
