"""Whole training scripts that stall, each with a healthy and a slow twin: whom attaching names, whom it wrongly accuses, and how long it takes.

    python bench/attach_fresh.py                    # all scripts of bench/attach_fresh, in all three ways
    python bench/attach_fresh.py frozen short_shard # some

Each script says in its first lines how it is started and which rank is to blame; both were written before the first run.
Horovod, JAX and TensorFlow run in the environments of the fault zoo (`phalanx faults prepare`), and are left out where there is none.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

import phalanx

SOURCE = Path(phalanx.__file__).parent.parent
SCRIPTS = Path(__file__).with_name("attach_fresh")
ENVIRONMENTS = SCRIPTS.parent.parent / ".zoo" / "environments"
AGE_S = 10.0  # how long a hang has lasted when one attaches
HEAD = re.compile(r"# launcher: (\w+) (\d+)\n# truth: (\w+)\n")
Start = tuple[list[str], dict[str, str]]


def starts(launcher: str, size: int, script: str, port: int) -> list[Start]:
    """The commands that start the job, each with its variables. Raises FileNotFoundError where a framework is not installed."""
    here, name = sys.executable, str(size)
    store = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "PORT": str(port)}
    if launcher == "torchrun":
        return [([here, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", name, script], {})]
    if launcher == "accelerate":
        words = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", name, "--num_machines", "1"]
        words += ["--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", str(port), script]
        return [([here, *words], {"ACCELERATE_USE_CPU": "true"})]
    if launcher == "spawn":
        return [([here, script], store)]
    if launcher == "mpirun":
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        mpirun = str(Path(here).with_name("mpirun"))
        words = [mpirun if Path(mpirun).exists() else "mpirun", "-n", name, "--oversubscribe", "--bind-to", "none"]
        return [([*words, here, script], {**store, **root})]
    if launcher == "horovodrun":
        python = environment("horovod")
        words = [str(Path(python).with_name("horovodrun")), "-np", name, "--gloo", "-H", f"localhost:{name}"]
        return [([*words, python, script], {})]
    if launcher == "jax":
        return [([environment("jax"), script], {**store, "NUMBER": str(rank)}) for rank in range(size)]
    if launcher == "tensorflow":
        workers = [f"127.0.0.1:{port + number}" for number in range(size)]
        told = [{"cluster": {"worker": workers}, "task": {"type": "worker", "index": n}} for n in range(size)]
        return [([environment("tensorflow"), script], {"TF_CONFIG": json.dumps(one)}) for one in told]
    shared = {**store, "WORLD_SIZE": name, "LOCAL_WORLD_SIZE": name}
    return [([here, script], {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(size)]


def environment(name: str) -> str:
    python = ENVIRONMENTS / name / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(f"no environment {name}: phalanx faults prepare")
    return str(python)


@contextmanager
def running(commands: Sequence[Start], folder: Path, mode: str) -> Iterator[list[int]]:
    """The processes started in the folder; whatever carries its mark is killed afterwards."""
    mark = {"BENCH_JOB": str(folder), "MODE": mode, "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=(folder / f"out{number}").open("wb"), stderr=-2,
            env={**os.environ, **mark, **extra},
        )
        for number, (command, extra) in enumerate(commands)
    ]  # fmt: skip
    try:
        yield [one.pid for one in started]
    finally:
        for process in psutil.process_iter():
            try:
                if process.environ().get("BENCH_JOB") == str(folder):
                    process.send_signal(signal.SIGKILL)
            except psutil.Error:
                continue
        for one in started:
            one.wait()


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def free_ports() -> int:
    """The first of several ports that nobody uses now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def attach(pid: int) -> tuple[dict[str, object], float, float]:
    """The report, the seconds that it took, and those of the processor."""
    began, spent = time.monotonic(), sum(os.times()[2:4])
    command = [sys.executable, "-m", "phalanx", "attach", str(pid), "--format", "json"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(SOURCE)}
    )
    report = json.loads(done.stdout) if done.stdout else {"attached": {"said": done.stderr[-300:]}}
    return report, time.monotonic() - began, sum(os.times()[2:4]) - spent


def run_one(script: Path, mode: str) -> tuple[dict[str, object], float, float]:
    launcher, size, _ = head_of(script)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shutil.copy(script, folder / script.name)
        os.mkfifo(folder / "shards")
        with running(starts(launcher, size, script.name, free_ports()), folder, mode) as pids:
            until = time.monotonic() + 180
            while len(list(folder.glob("ready*"))) < size:
                if time.monotonic() > until or not any(map(is_running, pids)):
                    raise TimeoutError("\n".join(path.read_text()[-2000:] for path in folder.glob("out*")))
                time.sleep(0.2)
            time.sleep(AGE_S)
            return attach(pids[0])


def head_of(script: Path) -> tuple[str, int, list[int]]:
    found = HEAD.match(script.read_text())
    assert found is not None, script
    return found[1], int(found[2]), [int(found[3])] if found[3].isdigit() else []


def main(wanted: list[str]) -> None:
    exact = hung = innocents = quiet = sound = 0
    times, spents = [], []
    for script in sorted(SCRIPTS.glob("*.py")):
        if wanted and script.stem not in wanted:
            continue
        truth = head_of(script)[2]
        for mode in ("stall", "healthy", "slow"):
            try:
                report, seconds, spent = run_one(script, mode)
            except (FileNotFoundError, TimeoutError) as error:
                print(f"--  {script.stem} {mode}: {error}", flush=True)
                continue
            verdict, attached = report.get("verdict"), report.get("attached")
            named = verdict["culprit_ranks"] if isinstance(verdict, dict) else None
            said = verdict["headline"] if isinstance(verdict, dict) else dict(attached or {}).get("said")  # type: ignore[call-overload]
            right = named == (truth if mode == "stall" else None)
            hung, exact = hung + (mode == "stall"), exact + (right and mode == "stall")
            sound, quiet = sound + (mode != "stall"), quiet + (right and mode != "stall")
            innocents += len(set(named or []) - set(truth if mode == "stall" else []))
            times.append(seconds)
            spents.append(spent)
            mark = "ok" if right else "NO"
            print(
                f"{mark}  {script.stem} {mode}: truth {truth}, accused {named}, {seconds:.1f} s, {spent:.1f} of the processor: {said}",
                flush=True,
            )
    print(
        f"\nstalls judged exactly: {exact} of {hung}; innocents accused: {innocents}; healthy and slow jobs left alone: {quiet} of {sound}; "
        f"median {statistics.median(times):.1f} s, {statistics.median(spents):.1f} of the processor, load {os.getloadavg()[0]:.0f}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
