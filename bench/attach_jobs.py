"""Jobs whose stall is known before anybody looks: how often attaching names the right rank, whom it wrongly accuses, and how long it takes.

    python bench/attach_jobs.py             # all of them
    python bench/attach_jobs.py flock busy  # some

The table was written before the first run. `truth` is the rank to blame, None where nobody is: a tie, a healthy or merely slow job.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import phalanx

SOURCE = str(Path(phalanx.__file__).parent.parent)
AGE_S = 10.0  # how long a hang has lasted when one attaches
SIZE = 4
# name: (truth, what the ranks do once at step 5)
STALLS: dict[str, tuple[int | None, str]] = {
    "pipe": (2, "if rank == 2: os.read(os.pipe()[0], 1)"),
    "child": (0, "if rank == 0: subprocess.run(['sleep', '600'])"),
    "server": (1, "if rank == 1: ask_server()"),
    "queue": (3, "if rank == 3: queue.Queue().get()"),
    "polling": (1, "if rank == 1: wait_for_file()"),
    "busy": (2, "if rank == 2: turn()"),
    "broadcast": (0, "if rank == 0: dist.broadcast(torch.ones(3), 0)"),
    "gather": (1, "if rank == 1: dist.all_gather([torch.ones(1) for _ in range(size)], torch.ones(1))"),
    "receive": (2, "if rank == 1: dist.recv(torch.ones(1), 2)\n            if rank == 2: compute_nothing()"),
    "event": (1, "if rank == 1: threading.Event().wait()"),
    "join": (2, "if rank == 2: start_child().join()"),
    "flock": (1, "if rank == 1: take_file_lock()"),
    "workers": (0, "if rank == 0: next(iter(blocked_loader()))"),
    "stopped": (3, "if rank == 3: os.kill(os.getpid(), signal.SIGSTOP)"),
    "ahead": (1, "if rank == 1: leave = True"),
    "fifo": (0, "if rank == 0: save_to_fifo()"),
    "two locks": (1, "if rank == 1: deadlock()"),
    "hook": (2, "hooked = rank == 2"),
    "subgroup": (3, "if rank in (2, 3): in_half()"),
    "crossed": (3, "cross(rank == 3)"),
    "tie": (None, "cross(rank >= 2)"),
    "late start": (1, "pass"),
}
HEALTHY: dict[str, str] = {
    "fine": "pass",
    "communicates": "large = True",
    "slow rank": "slow = rank == 1",
    "checkpoint": "if rank == 0: write_checkpoint()\n            dist.barrier()",
    "evaluation": "if rank == 0: evaluate()\n            dist.barrier()",
    "slow data": "data = rank == 2",
    "compiler": "if rank == 3: compile_something()",
}
SCRIPT = """\
import fcntl, os, queue, signal, socket, subprocess, sys, threading, time
import torch, torch.distributed as dist

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
if {late} and rank == 1:
    open(f"ready{{rank}}", "w").close()
    time.sleep(600)
dist.init_process_group("gloo")
halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
twins = [dist.new_group([0, 1, 2, 3]), dist.new_group([0, 1, 2, 3])]


def ask_server():
    server = socket.create_server(("127.0.0.1", 0))
    line = socket.create_connection(server.getsockname())
    line.recv(100)


def wait_for_file():
    while not os.path.exists("never"):
        time.sleep(0.1)


def turn():
    done = False
    while not done:
        if os.getpid() == 0:
            done = True


def compute_nothing():
    time.sleep(600)


def start_child():
    import multiprocessing
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    child.start()
    return child


def take_file_lock():
    with open("lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        subprocess.Popen(["sleep", "600"], pass_fds=[file.fileno()])
    with open("lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


class Blocked(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        time.sleep(600)


def blocked_loader():
    return torch.utils.data.DataLoader(Blocked(), num_workers=2)


def save_to_fifo():
    os.mkfifo("store")
    torch.save(torch.ones(3), "store")


def deadlock():
    one, other = threading.Lock(), threading.Lock()

    def second():
        with other:
            time.sleep(0.5)
            with one:
                pass

    threading.Thread(target=second, name="second", daemon=True).start()
    with one:
        time.sleep(1)
        with other:
            pass


def in_half():
    if rank == 3:
        compute_nothing()
    dist.all_reduce(torch.ones(1), group=halves[1])


def cross(turned):
    for group in reversed(twins) if turned else twins:
        dist.all_reduce(torch.ones(1), group=group)


def write_checkpoint():
    until = time.time() + 60
    with open("checkpoint", "wb") as file:
        while time.time() < until:
            file.seek(0)
            file.write(os.urandom(1 << 22))


def evaluate():
    until = time.time() + 60
    batches = 0
    while time.time() < until:
        batches += 1
        torch.randn(300, 300) @ torch.randn(300, 300)


def compile_something():
    subprocess.run([sys.executable, "-c", "import time; end = time.time() + 60\\nwhile time.time() < end: sum(range(1000))"])


model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
hooked = leave = large = slow = data = False


def wait_in_forward(module, inputs):
    if hooked:
        compute_nothing()


model.module.register_forward_pre_hook(wait_in_forward)


def train():
    global hooked, leave, large, slow, data
    step = 0
    while True:
        step += 1
        if step == 5:
            open(f"ready{{rank}}", "w").close()
            {act}
        if leave:
            break
        if data:
            time.sleep(1.2)
        model(torch.randn(4, 8)).sum().backward()
        if large:
            return communicate()
        if slow:
            for _ in range(20):
                torch.randn(500, 500) @ torch.randn(500, 500)
        time.sleep(0.01)
    dist.barrier()


def communicate():
    while True:
        dist.all_reduce(LARGE)


LARGE = torch.ones(1 << 20)
train()
"""


def run_one(name: str, act: str, port: int) -> tuple[dict[str, object], float, float]:
    """The report on one job, the seconds that attaching took, and those of the processor."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "train.py").write_text(SCRIPT.format(act=act, late=name == "late start"))
        shared = {
            "WORLD_SIZE": str(SIZE),
            "LOCAL_WORLD_SIZE": str(SIZE),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        started = [
            subprocess.Popen(
                [sys.executable, "train.py"], cwd=folder, stdout=(folder / f"out{rank}").open("wb"), stderr=-2,
                start_new_session=True, env={**os.environ, **shared, "OMP_NUM_THREADS": "1", "RANK": str(rank)},
            )
            for rank in range(SIZE)
        ]  # fmt: skip
        try:
            needed = 1 if name == "late start" else SIZE
            until = time.monotonic() + 180
            while len(list(folder.glob("ready*"))) < needed and time.monotonic() < until:
                time.sleep(0.2)
            time.sleep(AGE_S)
            began, spent = time.monotonic(), sum(os.times()[2:4])
            command = [sys.executable, "-m", "phalanx", "attach", str(started[0].pid), "--format", "json"]
            environment = {**os.environ, "PYTHONPATH": SOURCE}
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            return json.loads(done.stdout or "{}"), time.monotonic() - began, sum(os.times()[2:4]) - spent
        finally:
            for one in started:
                os.killpg(one.pid, signal.SIGKILL)
                one.wait()


def main(wanted: list[str]) -> None:
    table = [(name, truth, act) for name, (truth, act) in STALLS.items()]
    table += [(name, None, act) for name, act in HEALTHY.items()]
    exact = hung = innocents = quiet = 0
    times, spents = [], []
    for number, (name, truth, act) in enumerate(table):
        if wanted and name not in wanted:
            continue
        report, seconds, spent = run_one(name, act, 29800 + number)
        verdict = report.get("verdict")
        named = verdict["culprit_ranks"] if isinstance(verdict, dict) else None
        attached = report.get("attached")
        said = (
            (verdict or {}).get("headline")
            if verdict
            else attached["said"]
            if isinstance(attached, dict)
            else "nothing"
        )
        right = named == [truth] if truth is not None else named == [] if name in STALLS else named is None
        exact += right and name in STALLS
        hung += name in STALLS
        quiet += right and name in HEALTHY
        innocents += len(set(named or []) - {truth})
        times.append(seconds)
        spents.append(spent)
        print(
            f"{'ok ' if right else 'NO '} {name:13s} truth {truth}, accused {named}, {seconds:.1f} s ({spent:.1f} of the processor): {said}",
            flush=True,
        )
    print(f"\nstalls judged exactly: {exact} of {hung}; innocents accused: {innocents}; ", end="")
    print(
        f"healthy and slow jobs left alone: {quiet} of {len(times) - hung}; median {statistics.median(times):.1f} s, {statistics.median(spents):.1f} of the processor, load {os.getloadavg()[0]:.0f}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
