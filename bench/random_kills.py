"""Kills launchers, agents, drivers, replays and attaches at random moments and looks at what is left.

    python bench/random_kills.py [--each 100] [--target run|agent|driver|replay|attach] [--seed 0]

After a kill no process of the job may be left, every bundle must be readable and say that it was cut off where it was, a
recording must be unchanged by a killed replay, and a job must live on after a killed attach.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import psutil

from phalanx.sources import find_inputs
from phalanx.sources.bundle import read_manifest

_LOOP = """\
import time
for step in range(100000):
    print("step", step, "loss", 1.0, flush=True)
    time.sleep(0.02)
"""
_TORCH = """\
import sys, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
for step in range(int(sys.argv[1])):
    value = torch.ones(8)
    dist.all_reduce(value)
    time.sleep(0.01)
"""
_PATIENCE = 60.0


class Bed:
    """A folder for one kill, and the processes that carry its mark."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        log = (self.folder / "out.log").open("ab")
        command = [sys.executable, "-m", "phalanx", *words]
        marked = {**os.environ, "KILLS_BED": str(self.folder)}
        return subprocess.Popen(
            command,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=marked,
            start_new_session=True,
        )

    def processes(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and process.environ().get("KILLS_BED") == str(self.folder):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def is_empty_soon(self) -> bool:
        return _wait(lambda: not self.processes())

    def clean(self) -> None:
        for process in self.processes():
            try:
                process.kill()
            except psutil.Error:
                continue


def _wait(condition: Callable[[], bool], seconds: float = _PATIENCE) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return condition()


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def _bundle_problem(bundle: Path) -> str | None:
    if not (bundle / "manifest.json").exists():
        return None  # killed before there was anything
    try:
        read_manifest(bundle)
        find_inputs([str(bundle)])
        done = subprocess.run(
            [sys.executable, "-m", "phalanx", "diagnose", str(bundle)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    except Exception as error:  # any is a finding of this bench
        return f"unreadable bundle: {error!r}"
    return f"diagnose: {done.stderr[-300:]}" if "Traceback" in done.stderr or done.returncode > 1 else None


def kill_run(bed: Bed, chance: Random) -> str | None:
    (bed.folder / "loop.py").write_text(_LOOP)
    process = bed.start("run", "-n", "2", "--bundle", "bundle", "--framework", "none", "loop.py")
    time.sleep(chance.uniform(0.2, 3.0))
    _kill(process)
    if not bed.is_empty_soon():
        return f"orphans: {[one.cmdline() for one in bed.processes()]}"
    return _bundle_problem(bed.folder / "bundle")


def _on_agents(bed: Bed) -> subprocess.Popen[bytes]:
    (bed.folder / "loop.py").write_text(_LOOP)
    return bed.start("run", "-n", "2", "--on", "local", "--with", "nodes=2", "--bundle", "bundle", "--framework", "none", "loop.py")  # fmt: skip


def kill_driver(bed: Bed, chance: Random) -> str | None:
    process = _on_agents(bed)
    time.sleep(chance.uniform(0.2, 4.0))
    _kill(process)
    if not bed.is_empty_soon():
        return f"orphans: {[one.cmdline() for one in bed.processes()]}"
    return _bundle_problem(bed.folder / "bundle")


def kill_agent(bed: Bed, chance: Random) -> str | None:
    driver = _on_agents(bed)
    time.sleep(chance.uniform(0.2, 4.0))
    if not _wait(lambda: bool(psutil.Process(driver.pid).children())):
        bed.clean()
        return "no agent was started"
    chance.choice(psutil.Process(driver.pid).children()).kill()
    try:
        status = driver.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        bed.clean()
        return "the driver went on after an agent was killed"
    if status == 0:
        return "the driver says that all is well"
    if not bed.is_empty_soon():
        return f"orphans: {[one.cmdline() for one in bed.processes()]}"
    return _bundle_problem(bed.folder / "bundle")


def _digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


class Replays:
    """One recording, replayed and killed again and again."""

    def __init__(self, folder: Path) -> None:
        self.home = Bed(folder / "recorded")
        (self.home.folder / "train.py").write_text(_TORCH)
        recorded = self.home.start("run", "-n", "2", "--record=ring", "--bundle", "bundle", "train.py", "200")
        if recorded.wait(180) != 0:
            raise SystemExit((self.home.folder / "out.log").read_text())
        self.bundle = self.home.folder / "bundle"
        self.digest = _digest(self.bundle)

    def kill(self, bed: Bed, chance: Random) -> str | None:
        script = str(self.home.folder / "train.py")
        process = bed.start("replay", str(self.bundle), "--rank", "0", "--script", script)
        time.sleep(chance.uniform(0.2, 6.0))
        _kill(process)
        if not bed.is_empty_soon():
            return f"orphans: {[one.cmdline() for one in bed.processes()]}"
        return None if _digest(self.bundle) == self.digest else "the recording changed"


class Attaches:
    """One job, attached to and left by a kill again and again; it must go on."""

    def __init__(self, folder: Path) -> None:
        self.home = Bed(folder / "job")
        (self.home.folder / "train.py").write_text(_TORCH)
        variables = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29617", "WORLD_SIZE": "2"}
        self.ranks = [
            subprocess.Popen(
                [sys.executable, "train.py", "100000000"], cwd=self.home.folder, env={**variables, "RANK": str(rank)}
            )
            for rank in range(2)
        ]
        time.sleep(8)

    def kill(self, bed: Bed, chance: Random) -> str | None:
        process = bed.start("attach", str(self.ranks[0].pid), "--bundle", "bundle")
        time.sleep(chance.uniform(0.2, 5.0))
        _kill(process)
        if not bed.is_empty_soon():
            return f"orphans: {[one.cmdline() for one in bed.processes()]}"
        if any(rank.poll() is not None for rank in self.ranks):
            return "a rank died"
        states = [psutil.Process(rank.pid).status() for rank in self.ranks]
        if psutil.STATUS_STOPPED in states and not _wait(lambda: self._runs(), 10):
            return "a rank stayed stopped"
        before = [psutil.Process(rank.pid).cpu_times().user for rank in self.ranks]
        moved = _wait(lambda: all(psutil.Process(rank.pid).cpu_times().user > was for rank, was in zip(self.ranks, before, strict=True)), 20)  # fmt: skip
        return None if moved else "the job does not move"

    def _runs(self) -> bool:
        return all(psutil.Process(rank.pid).status() != psutil.STATUS_STOPPED for rank in self.ranks)

    def close(self) -> None:
        for rank in self.ranks:
            rank.kill()
            rank.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=100)
    parser.add_argument("--target", choices=["run", "agent", "driver", "replay", "attach"])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    problems = 0
    with tempfile.TemporaryDirectory(prefix="phalanx-kills-") as name:
        folder = Path(name)
        for target in [given.target] if given.target else ["run", "agent", "driver", "replay", "attach"]:
            problems += _of_target(target, folder / target, given.each, Random(f"{target} {given.seed}"))
    return 1 if problems else 0


def _of_target(target: str, folder: Path, count: int, chance: Random) -> int:
    attaches = Attaches(folder) if target == "attach" else None
    kills: dict[str, Callable[[Bed, Random], str | None]] = {
        "run": kill_run,
        "agent": kill_agent,
        "driver": kill_driver,
    }
    if target == "replay":
        kills["replay"] = Replays(folder).kill
    if attaches is not None:
        kills["attach"] = attaches.kill
    problems = 0
    began = time.monotonic()
    try:
        for number in range(count):
            bed = Bed(folder / f"bed{number}")
            problem = kills[target](bed, chance)
            bed.clean()
            if problem:
                problems += 1
                print(f"{target} {number}: {problem}", flush=True)
    finally:
        if attaches is not None:
            attaches.close()
    print(f"{target}: {count} kills, {problems} problems, {time.monotonic() - began:.0f} s", flush=True)
    return problems


if __name__ == "__main__":
    sys.exit(main())
