"""What `phalanx run` costs beside torchrun: step time, processor time a step, time to the first collective, memory.

    python bench/run_vs_torchrun.py                          # 2 and 4 ranks, small and large model: some minutes
    python bench/run_vs_torchrun.py --ranks 2 --models small --rounds 60
    python bench/run_vs_torchrun.py --ranks 32 --rounds 0 --launches 1    # many tiny ranks

The same DDP job is started three times and stays: by torchrun, by `phalanx run`, by `phalanx run --no-inside`. They take turns
in short blocks of steps, in an order that changes by round; whoever is not at work is stopped (SIGSTOP), launcher and ranks, so
that a block is undisturbed by the others and a slow moment of the machine meets all three. Of each block is kept: the median
and the trimmed mean of the step times as rank 0 saw them, and the processor seconds a step of ranks, launcher and all that they
started, by the kernel's count.

Two processes that run the same code differ by a percent or more, by where their memory lies. So every job also makes bare blocks, with
its launcher stopped and the watch inside at rest: what a launcher costs is the ratio of both kinds of block within one job, and what
`phalanx run` costs beside torchrun is the ratio of these ratios, round by round. The plain ratio between the jobs is printed too.
Printed is the median over the rounds with a 95 % interval (bootstrap). "Counted directly" is the processor time of the launcher
and of the watch's threads inside the ranks alone, as a share of the ranks' own: it misses what they cost others, but no other work
on the machine can move it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

MODELS = {"small": 128, "large": 1024}
LAUNCHERS = ("torchrun", "phalanx run", "phalanx run --no-inside")
GOALS = {"phalanx run": 1.0, "phalanx run --no-inside": 0.3}  # percent
BLOCK_S = 0.8
START_S = 240.0


@dataclass
class Block:
    """What one block of steps took."""

    median: float
    trimmed: float
    cpu: float  # seconds a step, of all
    direct: float  # share of the launcher and the watch


@dataclass
class Job:
    """A job under one launcher, stopped except in its own blocks."""

    name: str
    process: subprocess.Popen[bytes]
    folder: Path
    ranks: int
    pids: list[int] = field(default_factory=list)
    first: float = 0.0
    launcher_mb: float = 0.0
    launch_cpu: float = 0.0

    def wait_until_started(self, began: float) -> None:
        """Until every rank is ready for its first block."""
        deadline = time.monotonic() + START_S
        files = [self.folder / f"started-{rank}" for rank in range(self.ranks)]
        while not all(file.exists() for file in files):
            if self.process.poll() is not None or time.monotonic() > deadline:
                said = (self.folder / "said").read_text(errors="replace")[-2000:]
                raise SystemExit(f"{self.name} did not start the job:\n{said}")
            time.sleep(0.02)
        told = [json.loads(file.read_text()) for file in files]
        self.pids = [one["pid"] for one in told]
        self.first = max(one["first"] for one in told) - began
        self.launcher_mb = told[0]["launcher_mb"]
        self.launch_cpu = sum(self._spent().values())

    def stop(self) -> None:
        """The launcher first, so that it does not see its ranks stand."""
        for pid in (self.process.pid, *self.pids):
            os.kill(pid, signal.SIGSTOP)

    def go(self, *, bare: bool = False) -> None:
        for pid in self.pids if bare else (*self.pids, self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def block(self, steps: int, *, bare: bool = False) -> Block:
        """Let it make so many steps; if `bare`, without its launcher and its watch."""
        self.go(bare=bare)
        time.sleep(0.05)  # what was due while it stood is done before it is measured
        before, inside = self._spent(), self._watching()
        times = self._run(f"{steps} bare" if bare else str(steps))
        after, watched = self._spent(), self._watching() - inside
        self.stop()
        own = sum(after[pid] - before.get(pid, 0.0) for pid in self.pids)
        others = sum(after[pid] - before.get(pid, 0.0) for pid in after if pid not in self.pids)
        cut = len(times) // 10
        kept = sorted(times)[cut : len(times) - cut] or times
        return Block(
            statistics.median(times),
            statistics.fmean(kept),
            (own + others) / steps,
            100 * (others + watched) / (own - watched),
        )

    def _run(self, order: str) -> list[float]:
        for rank in range(self.ranks):
            self._pipe(f"told-{rank}", "w").write(f"{order}\n")
            self._pipe(f"told-{rank}", "w").flush()
        # all are opened before any is read: a rank makes no step before its peers have theirs open
        answers = [self._pipe(f"answer-{rank}", "r") for rank in range(self.ranks)]
        times = [json.loads(answer.readline()) for answer in answers]
        return list(times[0])

    def _pipe(self, name: str, mode: str):  # type: ignore[no-untyped-def]
        pipes = self.__dict__.setdefault("_pipes", {})
        if name not in pipes:
            pipes[name] = (self.folder / name).open(mode)
        return pipes[name]

    def _spent(self) -> dict[int, float]:
        """Processor seconds of the launcher, its ranks and whatever else it started, by process."""
        found = {}
        launcher = psutil.Process(self.process.pid)
        for one in (launcher, *launcher.children(recursive=True)):
            with contextlib.suppress(OSError):
                tasks = list(Path(f"/proc/{one.pid}/task").iterdir())
                found[one.pid] = sum(_ran(one.pid, task.name) for task in tasks)
        return found

    def _watching(self) -> float:
        """Processor seconds of the watch's threads inside the ranks, whose numbers the ranks told."""
        return sum(
            _ran(pid, task)
            for rank, pid in enumerate(self.pids)
            for task in (self.folder / f"watching-{rank}").read_text().split()
        )

    def end(self) -> None:
        self.go()
        for rank in range(
            self.ranks if self.pids else 0
        ):  # a rank that was never told anything still waits for both pipes
            self._pipe(f"told-{rank}", "w")
            self._pipe(f"answer-{rank}", "r")
        for pipe in self.__dict__.get("_pipes", {}).values():
            with contextlib.suppress(OSError):
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(60)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def _ran(pid: int, task: str) -> float:
    try:
        return int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, ValueError):
        return 0.0


def start(name: str, ranks: int, width: int, folder: Path) -> Job:
    """Start the job under a launcher and wait until it is ready, then stop it."""
    folder.mkdir()
    for rank in range(ranks):
        os.mkfifo(folder / f"told-{rank}")
        os.mkfifo(folder / f"answer-{rank}")
    program = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    if name != "torchrun":
        program = [sys.executable, "-m", "phalanx", "run", "-n", str(ranks), "--bundle", str(folder / "bundle")]
        program += name.split()[2:]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "BENCH_FOLDER": str(folder)}
    began = time.time()
    with (folder / "said").open("wb") as said:
        argv = [*program, str(Path(__file__).with_name("blocks_job.py")), str(width)]
        process = subprocess.Popen(argv, env=variables, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    job = Job(name, process, folder, ranks)
    job.wait_until_started(began)
    job.stop()
    return job


@contextlib.contextmanager
def jobs(ranks: int, width: int, folder: Path) -> Iterator[list[Job]]:
    """All three, ready and stopped."""
    started: list[Job] = []
    try:
        for number, name in enumerate(LAUNCHERS):
            started.append(start(name, ranks, width, folder / f"{ranks}-{width}-{number}"))
        yield started
    finally:
        for job in started:
            job.end()


def compare(ranks: int, model: str, rounds: int, folder: Path) -> None:
    """One size of job and model: many rounds in turns, then the figures."""
    with jobs(ranks, MODELS[model], folder) as started:
        blocks: dict[tuple[str, bool], list[Block]] = {
            (job.name, bare): [] for job in started for bare in (False, True)
        }
        took = [job.block(20).trimmed for job in started]
        steps = max(8, int(BLOCK_S / max(took)))  # the same for all
        order = list(blocks)
        by_name = {job.name: job for job in started}
        for _ in range(rounds):
            random.shuffle(order)
            for name, bare in order:
                blocks[name, bare].append(by_name[name].block(steps, bare=bare))
    load = os.getloadavg()[0]
    print(f"{ranks} ranks, {model} model: {rounds} rounds of {steps} steps each; load of the machine {load:.1f}")
    base = blocks["torchrun", False]
    print(f"  a step of torchrun's job: {1000 * statistics.median(one.median for one in base):.3f} ms, ", end="")
    print(f"{1000 * statistics.median(one.cpu for one in base):.3f} processor ms of all ranks and the launcher")
    for name in LAUNCHERS:
        _print_launcher(name, blocks)


def _print_launcher(name: str, blocks: Mapping[tuple[str, bool], Sequence[Block]]) -> None:
    print(f"  {name}: counted directly {statistics.median(one.direct for one in blocks[name, False]):.2f} %")
    for what, get in MEASURES.items():
        own, base = (_ratios(get, blocks[one, False], blocks[one, True]) for one in (name, "torchrun"))
        line = f"    {what:15} against its own bare steps {_interval(own)}"
        if name != "torchrun":
            beside = [a / b for a, b in zip(own, base, strict=True)]
            plain = _ratios(get, blocks[name, False], blocks["torchrun", False])
            line += f"; beside torchrun {_interval(beside, GOALS[name])}; job against job {_interval(plain)}"
        print(line, flush=True)


def _ratios(get: Callable[[Block], float], one: Sequence[Block], other: Sequence[Block]) -> list[float]:
    return [get(a) / get(b) for a, b in zip(one, other, strict=True)]


MEASURES: dict[str, Callable[[Block], float]] = {
    "step (median)": lambda one: one.median,
    "step (trimmed)": lambda one: one.trimmed,
    "processor": lambda one: one.cpu,
}


def _interval(ratios: Sequence[float], goal: float | None = None) -> str:
    """The median in percent with its 95 % interval, and whether that settles the goal."""
    random.seed(1)
    drawn = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(4000))
    low, middle, high = (100 * (one - 1) for one in (drawn[100], statistics.median(ratios), drawn[-101]))
    told = f"{middle:+.2f} % [{low:+.2f}, {high:+.2f}]"
    if goal is None:
        return told
    return f"{told} ({goal:g} %: {'met' if high <= goal else 'missed' if low > goal else 'open'})"


def launches(ranks: int, rounds: int, folder: Path) -> None:
    """Until the first collective, and the launcher's memory: one job at a time, in turns."""
    found: dict[str, list[Job]] = {name: [] for name in LAUNCHERS[:2]}
    for number in range(rounds):
        for name in LAUNCHERS[:2] if number % 2 else LAUNCHERS[1::-1]:
            job = start(name, ranks, MODELS["small"], folder / f"launch-{ranks}-{number}-{name.split()[0]}")
            job.end()
            found[name].append(job)
    print(f"{ranks} ranks, launch, medians of {rounds} in turns")
    for name, some in found.items():
        first, cpu, memory = (
            statistics.median(getattr(job, part) for job in some) for part in ("first", "launch_cpu", "launcher_mb")
        )
        print(
            f"  {name:26} first collective after {first:.2f} s; {cpu:.2f} processor s; launcher {memory:.0f} MB",
            flush=True,
        )


def main() -> None:
    """Measure in turns and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=40, help="blocks of steps in turns; 0 for launches alone")
    parser.add_argument("--launches", type=int, default=5, help="starts in turns; 0 for none")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    wishes = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the jobs are ended, too
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        for ranks in wishes.ranks:
            for model in wishes.models if wishes.rounds else ():
                compare(ranks, model, wishes.rounds, folder)
            if wishes.launches:
                launches(ranks, wishes.launches, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
