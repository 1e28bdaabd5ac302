"""What attaching costs and how it grows.

    python bench/attach_cost.py ranks 64        # tiny ranks on this machine, one of which does not come
    python bench/attach_cost.py hosts 32        # one tiny rank on each of so many namespace hosts (as root), and one host that is silent
    python bench/attach_cost.py simulate 1000   # so many hosts of 8 ranks each, answered by a stand-in
    python bench/attach_cost.py steps           # step time of a 2-rank PyTorch job before, during and after attaching
    python bench/attach_cost.py repeat 500      # so many attaches to a running 2-rank PyTorch job, which must train on
    python bench/attach_cost.py logs 8 64       # `diagnose --hosts` over so many namespace hosts (as root) with logs of so many MiB

Tiny ranks are real processes with connections between them, and a stand-in for PyTorch's collectives instead of 200 MB of PyTorch each.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import phalanx

if TYPE_CHECKING:
    from phalanx.lab.host import Host

SOURCE = str(Path(phalanx.__file__).parent.parent)
COLLECTIVES = "def all_reduce(sock):\n    sock.recv(1)\n"
TINY = """\
import os, socket, sys, time
sys.path.insert(0, "site-packages")
from torch.distributed.distributed_c10d import all_reduce

rank, size, port = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))


def evaluate():
    time.sleep(3600)


def connect():
    if rank == 0:
        server = socket.create_server(("", port), backlog=size)
        peers = [server.accept()[0] for _ in range(size - 1)]
        return peers[0] if peers else None, peers
    while True:
        try:
            peer = socket.create_connection((os.environ["MASTER_ADDR"], port))
            peer.settimeout(None)
            return peer, [peer]
        except OSError:
            time.sleep(0.1)


def train():
    peer, kept = connect()
    open(f"ready{rank}", "w").close()
    if rank == size // 2:
        evaluate()
    all_reduce(peer)


train()
"""
CRASH = """\
[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "/home/me/train.py", line 41, in <module>
[rank{rank}]:     train()
[rank{rank}]:   File "/home/me/train.py", line 27, in train
[rank{rank}]:     raise ValueError("bad batch")
[rank{rank}]: ValueError: bad batch
"""
TRAIN = """\
import os, time
import torch, torch.distributed as dist

dist.init_process_group("gloo")
log = open(f"steps{dist.get_rank()}", "a", buffering=1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)))
optimizer = torch.optim.SGD(model.parameters(), 0.01)


def train():
    step = 0
    while True:
        began = time.perf_counter()
        model(torch.randn(32, 64)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        log.write(f"{time.time():.4f} {time.perf_counter() - began:.6f}\\n")
        time.sleep(0.005)


train()
"""


def attach(*options: str) -> tuple[dict[str, object], int, float]:
    """The report, the exit status and the seconds of `phalanx attach`."""
    began, spent = time.monotonic(), sum(os.times()[2:4])
    command = [sys.executable, "-m", "phalanx", "attach", "--format", "json", *options]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": SOURCE}
    )
    seconds = time.monotonic() - began
    print(f"{sum(os.times()[2:4]) - spent:.1f} s of the processor; {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout or "{}"), done.returncode, seconds


@contextmanager
def tiny_scripts() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        package = folder / "site-packages" / "torch" / "distributed"
        package.mkdir(parents=True)
        for name in (package.parent / "__init__.py", package / "__init__.py"):
            name.touch()
        (package / "distributed_c10d.py").write_text(COLLECTIVES)
        (folder / "tiny.py").write_text(TINY)
        yield folder


def wait_for(folder: Path, count: int) -> None:
    while len(list(folder.glob("ready*"))) < count:
        time.sleep(0.2)
    time.sleep(10)  # so that the hang is old enough to be called one at the first look


def ranks(count: int) -> None:
    with tiny_scripts() as folder:
        variables = {
            "WORLD_SIZE": str(count),
            "LOCAL_WORLD_SIZE": str(count),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29771",
        }
        started = [
            subprocess.Popen(
                [sys.executable, "-S", "tiny.py"], cwd=folder, env={**os.environ, **variables, "RANK": str(rank)}
            )
            for rank in range(count)
        ]
        try:
            wait_for(folder, count)
            report, status, seconds = attach(str(started[0].pid))
            told(f"{count} ranks on this machine", report, status, seconds, count // 2)
        finally:
            for one in started:
                one.kill()


def hosts(count: int) -> None:
    from phalanx.lab import Bed

    with tiny_scripts() as folder, Bed(count) as bed:
        start = f"cd {folder} && exec {sys.executable} -S tiny.py"
        for host in bed:
            host.start(["sh", "-c", start])
        reach = write_reach(folder, bed)
        wait_for(folder, count)
        names = ",".join([*(host.name for host in bed), "silent"])
        report, status, seconds = attach("--hosts", names, "--each", reach)
        told(f"{count} hosts", report, status, seconds, count // 2)


def simulate(count: int) -> None:
    """One real view of 8 ranks, given back by `cat` under other numbers for each host: the asking, merging and judging are real."""
    from phalanx.attaching.hosts import View, collect_line, read_views
    from phalanx.attaching.jobs import find_job
    from phalanx.attaching.plain import to_plain

    with tiny_scripts() as folder:
        shared = {"WORLD_SIZE": "8", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29772"}
        started = [
            subprocess.Popen(
                [sys.executable, "-S", "tiny.py"], cwd=folder, env={**os.environ, **shared, "RANK": str(rank)}
            )
            for rank in range(8)
        ]
        try:
            wait_for(folder, 8)
            ((_, (view,)),) = read_views(collect_line([find_job(started[0].pid)]))
        finally:
            for one in started:
                one.kill()
        waiting = view.motion.ranks[0]
        for host in range(count):
            numbers = range(8 * host, 8 * host + 8)
            found = tuple(
                replace(one, host=f"n{host}", identity=replace(one.identity, rank=rank, size=8 * count))
                for one, rank in zip(view.job.ranks, numbers, strict=True)
            )
            motions = {rank: replace(waiting, position=replace(waiting.position, rank=rank)) for rank in numbers}
            if host == count // 2:
                motions[numbers[4]] = replace(
                    view.motion.ranks[4], position=replace(view.motion.ranks[4].position, rank=numbers[4])
                )
            own = View(replace(view.job, ranks=found), replace(view.motion, ranks=motions, links=()))
            line = "phalanx-attach-view " + json.dumps({"host": f"n{host}", "views": to_plain([own])})
            (folder / f"n{host}").write_text(line + "\n")
        names = ",".join(f"n{host}" for host in range(count))
        report, status, seconds = attach("--hosts", names, "--each", f"sh -c 'cat {folder}/{{}}' x")
        told(f"{count} simulated hosts, {8 * count} ranks", report, status, seconds, 8 * (count // 2) + 4)


def told(what: str, report: dict[str, object], status: int, seconds: float, culprit: int) -> None:
    verdict = report.get("verdict") or {}
    named = verdict.get("culprit_ranks") if isinstance(verdict, dict) else None
    print(
        f"{what}: {seconds:.1f} s, status {status}, accused {named}, truth [{culprit}], load {os.getloadavg()[0]:.1f}"
    )


@contextmanager
def torch_job(folder: Path) -> Iterator[list[int]]:
    (folder / "train.py").write_text(TRAIN)
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29773", "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen([sys.executable, "train.py"], cwd=folder, env={**os.environ, **shared, "RANK": str(rank)})
        for rank in range(2)
    ]
    try:
        files = [folder / f"steps{rank}" for rank in range(2)]
        while not all(file.exists() and file.stat().st_size for file in files):
            time.sleep(0.2)
        time.sleep(3)
        yield [one.pid for one in started]
        assert all(one.poll() is None for one in started), "a rank has ended"
    finally:
        for one in started:
            one.kill()


def step_times(folder: Path, since: float, until: float) -> list[float]:
    rows = [line.split() for line in (folder / "steps0").read_text().splitlines()]
    return [1000 * float(row[1]) for row in rows if len(row) == 2 and since <= float(row[0]) < until]


def steps(rounds: int = 5) -> None:
    with tempfile.TemporaryDirectory() as name, torch_job(Path(name)) as pids:
        phases: dict[str, list[float]] = {"before": [], "during": [], "after": []}
        for _ in range(rounds):
            marks = [time.time()]
            time.sleep(4)
            marks.append(time.time())
            attach(str(pids[0]))
            marks.append(time.time())
            time.sleep(4)
            marks.append(time.time())
            for phase, since, until in zip(phases, marks, marks[1:], strict=False):
                phases[phase] += step_times(Path(name), since, until)
        for phase, taken in phases.items():
            tell_steps(phase, taken)


def repeat(count: int) -> None:
    """Only the looks that pause a rank, one after the other: what an attach does to its target, without the time between."""
    from phalanx.attaching.jobs import find_job
    from phalanx.attaching.looks import look_at_job

    with tempfile.TemporaryDirectory() as name, torch_job(Path(name)) as pids:
        marks = [time.time()]
        time.sleep(5)
        job = find_job(pids[0])
        numbers = {one.identity.rank: one.process.pid for one in job.ranks}
        began, moving = time.monotonic(), 0
        marks.append(time.time())
        for _ in range(count):
            motion = look_at_job(numbers, job.size, looks=2, pause=lambda seconds: None)
            assert len(motion.ranks) == len(numbers)
            assert not any(one.stacks.error for one in motion.ranks.values())
            moving += motion.is_moving
        marks.append(time.time())
        seconds = time.monotonic() - began
        time.sleep(5)
        marks.append(time.time())
        print(
            f"{count} attaches of 2 looks in {seconds:.0f} s, seen moving {moving} times; load {os.getloadavg()[0]:.0f}"
        )
        for phase, since, until in zip(("before", "during", "after"), marks, marks[1:], strict=False):
            tell_steps(phase, step_times(Path(name), since, until))


def tell_steps(phase: str, taken: list[float]) -> None:
    taken.sort()
    assert taken, f"no step {phase}"
    print(
        f"{phase:7s} {len(taken):6d} steps, median {statistics.median(taken):.2f} ms, 90 % below {taken[9 * len(taken) // 10]:.2f} ms"
    )


def logs(count: int, megabytes: int) -> None:
    """`diagnose --hosts`: every namespace host has a log of so many MiB at the same path; one holds the cause. Then one host alone."""
    from phalanx.lab import Bed

    step = "[rank{0}]: 2026-05-04 10:00:00,123 INFO trainer step {1} loss 0.4213 lr 0.0003 tokens/s 18234\n"
    with tempfile.TemporaryDirectory() as place, Bed(count) as bed:
        folder = Path(place)
        (folder / "logs").mkdir()
        for host in bed:
            own = folder / f"of{host.number}"
            own.mkdir()
            block = "".join(step.format(host.number, number) for number in range(1000))
            text = block * ((megabytes << 20) // len(block))
            if host.number == count // 2:
                text += CRASH.format(rank=host.number)
            (own / f"rank{host.number}.log").write_text(text)
            host.run(["mount", "--bind", str(own), str(folder / "logs")])
        reach = write_reach(folder, bed)
        for wanted in ([f"h{count // 2}"], [host.name for host in bed]):
            began, spent = time.monotonic(), sum(os.times()[2:4])
            command = [sys.executable, "-m", "phalanx", "diagnose", "--format", "json", "--hosts", ",".join(wanted)]
            done = subprocess.run(
                [*command, "--each", reach, str(folder / "logs")],
                capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": SOURCE},
            )  # fmt: skip
            verdict = json.loads(done.stdout or "{}").get("verdict") or {}
            print(
                f"{len(wanted)} hosts with {megabytes} MiB each: {time.monotonic() - began:.1f} s, {sum(os.times()[2:4]) - spent:.1f} of the processor, "
                f"accused {verdict.get('culprit_ranks')}, truth [{count // 2}], load {os.getloadavg()[0]:.0f} {done.stderr[-200:]}"
            )


def write_reach(folder: Path, bed: Iterable[Host]) -> str:
    """The template for --each that enters the hosts."""
    entries = "\n".join(f'{host.name}) exec {shlex.join(host.entry)} -- "$@" ;;' for host in bed)
    (folder / "on.sh").write_text(f"host=$1; shift\ncase $host in\n{entries}\n*) exit 255 ;;\nesac\n")
    return f"sh {folder}/on.sh {{}}"


if __name__ == "__main__":
    verbs = {"ranks": ranks, "hosts": hosts, "simulate": simulate, "steps": steps, "repeat": repeat, "logs": logs}
    verbs[sys.argv[1]](*map(int, sys.argv[2:]))
