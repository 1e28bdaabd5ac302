"""Whether `phalanx run` changes a job that works: its end, its numbers, its time.

    python bench/harm.py                                # 64 small jobs of five frameworks, and every healthy job of the zoo
    python bench/harm.py --jobs tensorflow --rounds 3
    python bench/harm.py --jobs jax:ring --no-zoo

Each job is started by the launcher that its framework's users take (torchrun, horovodrun, or plain processes with TF_CONFIG, JAX's or
Keras' variables) and by `phalanx run`, in turns. Compared are the exit status, the lines that every rank prints (`= …` of the small jobs;
of the zoo's jobs the lines that come out the same in two runs without Phalanx) and the seconds of the command. `phalanx run`
judges a job after it has ended, so the seconds of the ranks themselves, from the first start to the last end, stand beside those of the command.
Of jobs that the zoo holds back only sums are printed. Exits with 1 if a job ends or counts otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from phalanx.zoo.bundled import can_be_watched
from phalanx.zoo.environments import environment_of
from phalanx.zoo.fault import Fault
from phalanx.zoo.reading import load_zoo
from phalanx.zoo.runner import run_fault

TREE = Path(__file__).parents[1]
JOBS = Path(__file__).with_name("harm_jobs")
ENVIRONMENTS = TREE / ".zoo" / "environments"
LIMIT_S = 300.0
_PREFIX = re.compile(r"^(?:\[[^\]]*\](?:<std\w+>:?)?:? ?)+")  # a launcher's name of the rank
_NUMBERS = re.compile(r"\d+\.\d+|(?:step|epoch|loss|sum|total)\D{0,3}\d", re.I)
_NOT_THE_JOB = re.compile(
    r"phalanx|warn|\.py:\d|torchrun|elastic|/job:|\.cc:\d|Gloo|OMP_NUM|secs?\b|seconds|ms\b", re.I
)


@dataclass(frozen=True)
class Case:
    """One small job: `harm_jobs/FRAMEWORK_jobs.py NAME`, with ranks or roles, in an environment of the zoo or, without one, in this one."""

    framework: str
    name: str
    environment: str
    ranks: int = 2
    roles: tuple[tuple[str, int], ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        backend = self.env.get("KERAS_BACKEND")
        return f"{self.framework}:{self.name}{f'-{backend}' if backend else ''}"

    @property
    def script(self) -> str:
        return f"{self.framework}_jobs.py"

    @property
    def python(self) -> Path:
        return ENVIRONMENTS / self.environment / "bin" / "python" if self.environment else Path(sys.executable)


@dataclass
class Seen:
    """How one run went."""

    status: int
    said: dict[str, list[str]]
    seconds: float
    ranks_s: float


def _cases() -> list[Case]:
    torch = "ddp accumulation fsdp join loaders collectives pipeline groups children surroundings waits fails"
    tensorflow = (
        "loop eager distributed_dataset whole_epoch checkpoints python_in_graph gathers fit threads slow_chief fails"
    )
    horovod = "optimizer accumulation collectives grouped objects join handles slow_rank fails"
    jax = "data_parallel sharded_weights mapped ring gathered broadcast barriers scanned callback slow_process devices fails"
    made = [Case("torch", name, "") for name in torch.split()]
    made += [Case("tensorflow", name, "tensorflow") for name in tensorflow.split()]
    servers = (("chief", 1), ("worker", 2), ("ps", 1))
    made += [Case("tensorflow", "parameter_server", "tensorflow", 4, servers)]
    many = (("chief", 1), ("worker", 1), ("ps", 2))
    made += [Case("tensorflow", "several_parameter_servers", "tensorflow", 4, many)]
    made += [Case("horovod", name, "horovod") for name in horovod.split()]
    made += [Case("horovod", name, "horovod-tensorflow") for name in ("tf_tape", "tf_function")]
    made += [
        Case("horovod", "tf_fit", "horovod-tensorflow", env={"TF_USE_LEGACY_KERAS": "1"})
    ]  # as its callbacks want it
    made += [Case("jax", name, "jax") for name in jax.split()]
    for backend, place in (("tensorflow", "tensorflow"), ("torch", "keras-torch"), ("jax", "jax")):
        one = {"KERAS_BACKEND": backend}
        made += [Case("keras", name, place, 1, env=one) for name in ("fit", "functional", "saved")]
    made += [Case("keras", "callbacks", "tensorflow", 1, env={"KERAS_BACKEND": "tensorflow"})]
    made += [Case("keras", "mirrored", "tensorflow", 1, env={"KERAS_BACKEND": "tensorflow"})]
    made += [Case("keras", "workers_loop", "tensorflow", 2, env={"KERAS_BACKEND": "tensorflow"})]
    made += [Case("keras", "process_group", "keras-torch", 2, env={"KERAS_BACKEND": "torch"})]
    made += [Case("keras", "data_parallel", "jax", 2, env={"KERAS_BACKEND": "jax"})]
    made += [Case("keras", "fails", "keras-torch", 1, env={"KERAS_BACKEND": "torch"})]
    return made


def _ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    found = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return found


def _by_hand(case: Case) -> list[dict[str, str]]:
    """The variables that a user without a launcher sets, rank by rank."""
    ports = _ports(case.ranks)
    seats = [(role, index) for role, count in case.roles or (("worker", case.ranks),) for index in range(count)]
    cluster: dict[str, list[str]] = {}
    for (role, _), port in zip(seats, ports, strict=True):
        cluster.setdefault(role, []).append(f"127.0.0.1:{port}")
    found = []
    for rank, (role, index) in enumerate(seats):
        task = {"cluster": cluster, "task": {"type": role, "index": index}}
        place = {
            "TF_CONFIG": json.dumps(task),
            "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{ports[0]}",
            "JAX_NUM_PROCESSES": str(case.ranks),
            "JAX_PROCESS_ID": str(rank),
            "KERAS_DISTRIBUTION_JOB_ADDRESSES": f"127.0.0.1:{ports[0]}",
            "KERAS_DISTRIBUTION_NUM_PROCESSES": str(case.ranks),
            "KERAS_DISTRIBUTION_PROCESS_ID": str(rank),
        }
        found.append(place if case.ranks > 1 else {})
    return found


def _run_bare(case: Case, folder: Path) -> Seen:
    """By the framework's own launcher, or without one; servers are ended when the others are done."""
    inherited = {**os.environ, **case.env, "PYTHONUNBUFFERED": "1"}
    began = time.monotonic()
    bin_folder = case.python.parent
    inherited["PATH"] = f"{bin_folder}{os.pathsep}{inherited['PATH']}"
    script = [case.script, case.name]
    by_torch = case.framework == "torch" or (case.env.get("KERAS_BACKEND") == "torch" and case.ranks > 1)
    if by_torch or case.framework == "horovod":
        torchrun = [
            str(case.python),
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            str(case.ranks),
        ]
        torchrun += ["--log-dir", "logs", "--redirects", "1"]
        horovodrun = ["horovodrun", "-np", str(case.ranks), "--gloo", "--output-filename", "logs", str(case.python)]
        argv = [*(torchrun if by_torch else horovodrun), *script]
        done = subprocess.run(argv, cwd=folder, env=inherited, capture_output=True, timeout=LIMIT_S, check=False)
        seconds = time.monotonic() - began
        files = sorted((folder / "logs").rglob("stdout*"))
        (folder / "launcher.err").write_bytes(done.stderr)
        said = {str(rank): _marked(file.read_text()) for rank, file in enumerate(files)}
        return Seen(1 if done.returncode else 0, said, seconds, seconds)
    started = []
    for rank, place in enumerate(_by_hand(case)):
        with (folder / f"out{rank}").open("wb") as out, (folder / f"err{rank}").open("wb") as err:
            argv = [str(case.python), *script]
            started.append(subprocess.Popen(argv, cwd=folder, env=inherited | place, stdout=out, stderr=err))
    awaited = started[:1] if case.roles else started
    try:
        codes = [process.wait(LIMIT_S) for process in awaited]
    finally:
        for process in started:
            process.kill()
            process.wait()
    seconds = time.monotonic() - began
    said = {str(rank): _marked((folder / f"out{rank}").read_text()) for rank in range(len(started))}
    return Seen(1 if any(codes) else 0, said, seconds, seconds)


def _run_watched(case: Case, folder: Path) -> Seen:
    argv = [sys.executable, "-m", "phalanx", "run", "--python", str(case.python), "--bundle", "bundle"]
    roles = ",".join(f"{role}={count}" for role, count in case.roles)
    argv += ["--roles", roles] if roles else ["-n", str(case.ranks)]
    argv += [word for name, value in case.env.items() for word in ("--env", f"{name}={value}")]
    began = time.monotonic()
    done = subprocess.run(
        [*argv, case.script, case.name], cwd=folder, capture_output=True, timeout=LIMIT_S, check=False
    )
    seconds = time.monotonic() - began
    (folder / "phalanx.err").write_bytes(done.stderr)
    attempts = sorted((folder / "bundle").glob("attempt*"))
    ranks = sorted(attempts[-1].glob("rank*"), key=lambda path: int(path.name[4:])) if attempts else []
    said = {path.name[4:]: _marked((path / "output.log").read_text()) for path in ranks}
    starts = [json.loads((path / "process.json").read_text())["started"] for path in ranks]
    ends = [json.loads((path / "exit.json").read_text())["at"] for path in ranks]
    inner = max(ends) - min(starts) if ranks else seconds
    return Seen(1 if done.returncode else 0, said, seconds, inner)


def _marked(text: str) -> list[str]:
    return [line for line in (_PREFIX.sub("", raw) for raw in text.splitlines()) if line.startswith("=")]


def _run_case(case: Case, rounds: int, keep: Path) -> tuple[list[Seen], list[Seen]]:
    bare: list[Seen] = []
    watched: list[Seen] = []
    for number in range(rounds):
        turn = [(_run_bare, bare), (_run_watched, watched)]
        for how, seen in turn if number % 2 == 0 else reversed(turn):
            folder = keep / case.label.replace(":", "-") / f"{how.__name__[5:]}-{number}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            shutil.copy(JOBS / case.script, folder)
            try:
                seen.append(how(case, folder))
            except subprocess.TimeoutExpired:
                seen.append(Seen(-1, {}, LIMIT_S, LIMIT_S))
    return bare, watched


def _verdict_on(bare: Sequence[Seen], watched: Sequence[Seen]) -> str:
    """What differs, in a word; lines count only where all runs without Phalanx print the same."""
    if {one.status for one in watched} != {one.status for one in bare}:
        return f"other end: {sorted({one.status for one in watched})} for {sorted({one.status for one in bare})}"
    if all(one.said == bare[0].said for one in bare) and any(one.said != bare[0].said for one in watched):
        return "other numbers"
    return ""


def _run_zoo_job(fault: Fault, keep: Path) -> tuple[str, float, float, int]:
    """What differs, the seconds without and with, and how many lines could be compared."""
    venv = ENVIRONMENTS / environment_of(fault).name
    plain = [run_fault(fault, venv, keep / f"{fault.name}-bare-{number}") for number in range(2)]
    watched = run_fault(fault, venv, keep / f"{fault.name}-watched", watched=True)
    first, second = (_numbers(keep / f"{fault.name}-bare-{number}") for number in range(2))
    always = first & second
    lacking = always - _numbers(keep / f"{fault.name}-watched")
    what = ""
    if not all(one.clean for one in plain):
        what = "not healthy without Phalanx either"
    elif not watched.clean:
        what = f"other end: {dict(watched.exit_codes)}"
    elif lacking:
        what = f"{len(lacking)} of {len(always)} lines differ, as {sorted(lacking)[0]!r}"
    return what, statistics.mean(one.seconds for one in plain), watched.seconds, len(always)


def _numbers(logs: Path) -> set[str]:
    """Lines in which a job tells a number of its training, without the launcher's prefix."""
    files = [file for file in logs.rglob("*.log") if file.is_file()]
    lines = {_PREFIX.sub("", line).strip() for file in files for line in file.read_text(errors="replace").splitlines()}
    return {line for line in lines if _NUMBERS.search(line) and not _NOT_THE_JOB.search(line)}


def _interval(values: Sequence[float]) -> str:
    """The median with a 95 % interval (bootstrap)."""
    chance = random.Random(0)
    middles = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(2000))
    return f"{statistics.median(values):+.2f} [{middles[50]:+.2f}, {middles[1949]:+.2f}]"


def _small_jobs(wanted: str | None, rounds: int, keep: Path) -> int:
    harmed = 0
    by_framework: dict[str, list[tuple[float, float]]] = {}
    for case in _cases():
        if wanted and not any(case.label.startswith(part) for part in wanted.split(",")):
            continue
        bare, watched = _run_case(case, rounds, keep)
        what = _verdict_on(bare, watched)
        harmed += bool(what)
        compared = all(one.said == bare[0].said for one in bare) and any(bare[0].said.values())
        seconds = [statistics.median(one.seconds for one in side) for side in (bare, watched)]
        inner = statistics.median(one.ranks_s for one in watched)
        ends = ",".join(str(one.status) for one in (*bare, *watched))
        lines = "same numbers" if compared else "no numbers that come out the same without Phalanx"
        print(
            f"{case.label:36} {ends:12} {seconds[0]:6.1f} {seconds[1]:6.1f} {inner:6.1f}  {what or lines}", flush=True
        )
        by_framework.setdefault(case.framework, []).append((seconds[1] - seconds[0], inner - seconds[0]))
    for framework, pairs in by_framework.items():
        command, ranks = ([pair[side] for pair in pairs] for side in (0, 1))
        print(f"{framework}: {len(pairs)} jobs; seconds more, command {_interval(command)}, ranks {_interval(ranks)}")
    return harmed


def _zoo_jobs(keep: Path, wanted: str | None) -> int:
    harmed = held_back = held_back_harmed = lines = 0
    more: list[float] = []
    healthy = [fault for fault in load_zoo(TREE / "faults") if fault.healthy]
    if wanted:
        healthy = [fault for fault in healthy if any(fault.name.startswith(part) for part in wanted.split(","))]
    able = [fault for fault in healthy if can_be_watched(fault)]
    for fault in able:
        what, bare_s, watched_s, compared = _run_zoo_job(fault, keep)
        more.append(watched_s - bare_s)
        lines += compared
        harmed += bool(what)
        if fault.split == "test":
            held_back, held_back_harmed = held_back + 1, held_back_harmed + bool(what)
        else:
            told = what or f"same end, {compared} lines the same"
            print(f"{fault.name:44} {bare_s:6.1f} {watched_s:6.1f}  {told}", flush=True)
    if able:
        print(
            f"zoo: {len(able)} of {len(healthy)} healthy jobs (the others have a launch of their own), {harmed} changed, {lines} lines compared"
        )
        print(f"  of them held back: {held_back}, {held_back_harmed} changed; seconds more, command {_interval(more)}")
    return harmed


def main() -> int:
    """Run what is asked for, and say what changed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", help="only these small jobs: torch,jax:ring")
    parser.add_argument("--zoo-jobs", help="only these of the zoo: names or their beginnings")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--no-zoo", action="store_true")
    parser.add_argument("--no-small", action="store_true")
    parser.add_argument("--keep", type=Path, help="where the runs' folders stay")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="harm-", ignore_cleanup_errors=True) as made:
        keep = (given.keep or Path(made)).absolute()
        print("job, exit status of all runs (bare, then by phalanx run), seconds bare, by phalanx run, of its ranks")
        harmed = 0 if given.no_small else _small_jobs(given.jobs, given.rounds, keep)
        harmed += 0 if given.no_zoo else _zoo_jobs(keep, given.zoo_jobs)
    print(f"{harmed} jobs changed")
    return 1 if harmed else 0


if __name__ == "__main__":
    sys.exit(main())
