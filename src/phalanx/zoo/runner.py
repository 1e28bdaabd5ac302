"""Runs a fault's job for real, ends it in time, and keeps what a user would have of it.

python -m phalanx.zoo.runner faults/torch-uneven-steps --venv .venv [--cured]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from phalanx.zoo.fault import Fault, FaultError, RunPlan, load_fault
from phalanx.zoo.sanitise import Sanitiser

GRACE_S = 8.0
_MARK = "PHALANX_ZOO_RUN"
_POLL_S = 0.1
# what a job may inherit: enough for pip and certificates, nothing that would change its behaviour
_INHERITED = re.compile(r"PIP_.*|SSL_CERT_.*|https?_proxy|no_proxy|TZ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. The launcher is keyed "launcher"; in the layout per-rank each rank is keyed."""

    exit_codes: Mapping[str, int]
    timed_out: bool
    seconds: float

    @property
    def clean(self) -> bool:
        return not self.timed_out and not any(self.exit_codes.values())


def run_fault(fault: Fault, venv: Path | None, out: Path, *, cured: bool = False, grace_s: float = GRACE_S) -> Outcome:
    """Run the fault (or its cured form) in a scratch copy of its folder and write its logs to `out`."""
    plan = cured_plan(fault) if cured else fault.run
    with tempfile.TemporaryDirectory(prefix="zoo-") as made:
        scratch = Path(made)
        job = scratch / "job"
        shutil.copytree(fault.folder, job, ignore=shutil.ignore_patterns("recorded", "__pycache__"))
        for name in ("tmp", "logs"):
            (scratch / name).mkdir()
        if cured and (job / "cured.py").is_file():
            (job / "cured.py").replace(job / "train.py")
        outcome = _Run(plan, venv, scratch, grace_s).execute()
        if plan.layout in ("torchrun-logdir", "per-node") and (job / "logs").is_dir():
            shutil.copytree(job / "logs", scratch / "logs" / "logs")
        _keep(scratch / "logs", out, Sanitiser(scratch, venv))
    return outcome


def cured_plan(fault: Fault) -> RunPlan:
    """The run with the cure's changes. Raises FaultError where there is no cure at all."""
    if fault.cure is None:
        if not (fault.folder / "cured.py").is_file():
            raise FaultError(f"{fault.folder}: no cure: neither cured.py nor a [cured] table in fault.toml")
        return fault.run
    plan = fault.run
    if fault.cure.command is not None:
        plan = replace(plan, command=fault.cure.command)
    if fault.cure.env is not None:
        plan = replace(plan, env=fault.cure.env)
    if fault.cure.rank_env is not None:
        plan = replace(plan, rank_env=fault.cure.rank_env)
    if fault.cure.start is not None:
        plan = replace(plan, start=fault.cure.start)
    return plan


class _Run:
    """One run: starts the processes, waits, and leaves none behind."""

    def __init__(self, plan: RunPlan, venv: Path | None, scratch: Path, grace_s: float) -> None:
        self.plan = plan
        self.venv = venv
        self.scratch = scratch
        self.grace_s = grace_s
        # launchers give their workers sessions of their own, so a process group is not enough to find
        # all that was started: every process carries this mark in its environment
        self.mark = uuid.uuid4().hex
        self.ports = [_free_port() for _ in range(plan.world_size + 1)]

    def execute(self) -> Outcome:
        started = time.monotonic()
        processes: dict[str, subprocess.Popen[bytes]] = {}
        timed_out = False
        try:
            if self.plan.layout == "per-rank":
                for rank in self.plan.started_ranks:
                    processes[str(rank)] = self._start(f"rank{rank}.log", rank)
            else:
                processes["launcher"] = self._start("job.log", None)
            timed_out = not _wait(processes.values(), self.plan.timeout_s)
            if timed_out:
                for process in processes.values():
                    _signal_group(process, signal.SIGTERM)
                _wait(processes.values(), self.grace_s)
        finally:
            self._kill_the_rest(processes.values())
        codes = {name: process.returncode for name, process in processes.items()}
        if self.plan.layout == "per-rank":
            text = json.dumps(codes, sort_keys=True) + "\n"
            (self.scratch / "logs" / "exit_codes.json").write_text(text, encoding="utf-8")
        return Outcome(codes, timed_out, time.monotonic() - started)

    def _start(self, log: str, rank: int | None) -> subprocess.Popen[bytes]:
        environment = self._environment(rank)
        command = [self._fill(word, rank) for word in self.plan.command]
        # resolved by us: the search for the program must use the job's PATH, not ours
        program = shutil.which(command[0], path=environment["PATH"]) or command[0]
        with (self.scratch / "logs" / log).open("ab") as stream:
            return subprocess.Popen(
                [program, *command[1:]],
                cwd=self.scratch / "job",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _environment(self, rank: int | None) -> dict[str, str]:
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = {name: value for name, value in os.environ.items() if _INHERITED.fullmatch(name)}
        environment |= {
            "PATH": f"{self.venv / 'bin'}:{path}" if self.venv else path,
            "HOME": str(self.scratch),
            "TMPDIR": str(self.scratch / "tmp"),
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
        }
        changes = dict(self.plan.env)
        if rank is not None:
            environment |= {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(self.plan.world_size),
                "LOCAL_WORLD_SIZE": str(self.plan.world_size),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(self.ports[-1]),
            }
            changes |= self.plan.rank_env.get(rank, {})
        for name, value in changes.items():
            environment[name] = self._fill(value, rank)
            if not value:
                del environment[name]
        environment[_MARK] = self.mark
        return environment

    def _fill(self, text: str, rank: int | None) -> str:
        """Put free ports and the rank in: `{port}`, `{port0}` … one for each rank, `{rank}`."""
        for number in range(self.plan.world_size):
            text = text.replace(f"{{port{number}}}", str(self.ports[number]))
        text = text.replace("{port}", str(self.ports[-1]))
        return text if rank is None else text.replace("{rank}", str(rank))

    def _kill_the_rest(self, processes: Collection[subprocess.Popen[bytes]]) -> None:
        deadline = time.monotonic() + 10
        while (left := marked_processes(self.mark)) and time.monotonic() < deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            _wait(processes, _POLL_S)
        # a killed process has no environment any more, but its status is still to be fetched
        _wait(processes, 5)


def marked_processes(mark: str) -> list[int]:
    """The processes that carry a run's mark in their environment (Linux's /proc)."""
    wanted = f"{_MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:  # ended meanwhile, or another user's
            continue
    return found


def _wait(processes: Collection[subprocess.Popen[bytes]], seconds: float) -> bool:
    """Wait for all; False when some still run after that time."""
    deadline = time.monotonic() + seconds
    while True:
        # a list, not a generator: every process must be polled, or it stays a zombie
        if None not in [process.poll() for process in processes]:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _keep(logs: Path, out: Path, sanitiser: Sanitiser) -> None:
    for file in logs.rglob("*"):
        if file.is_file():
            sanitiser.clean_file(file)
    if out.exists():
        shutil.rmtree(out)
    shutil.copytree(logs, out)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m phalanx.zoo.runner", description=__doc__)
    parser.add_argument("faults", nargs="+", type=Path, metavar="FAULTDIR")
    parser.add_argument("--venv", type=Path, help="virtual environment whose bin comes first on PATH")
    parser.add_argument("--cured", action="store_true", help="run the mended job; nothing is recorded")
    parser.add_argument("--out", type=Path, help="write logs to OUT/<fault> instead of <fault>/recorded")
    options = parser.parse_args(arguments)
    venv = options.venv.absolute() if options.venv else None
    # a crash is part of many faults; its core file is not
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    failures = 0
    for number, folder in enumerate(options.faults, start=1):
        where = f"[{number}/{len(options.faults)}] {folder.name}"
        print(f"{where}: {'cured ' if options.cured else ''}…", flush=True)
        with tempfile.TemporaryDirectory(prefix="zoo-out-") as unused:
            try:
                fault = load_fault(folder)
                out = options.out / fault.name if options.out else fault.recorded
                if options.cured and not options.out:
                    out = Path(unused) / "logs"
                outcome = run_fault(fault, venv, out, cured=options.cured)
            except FaultError as error:
                print(error, file=sys.stderr)
                failures += 1
                continue
            wanted_clean = options.cured or fault.healthy
            good = outcome.clean or not wanted_clean
            failures += not good
            ended = "ended by the runner" if outcome.timed_out else "ended"
            verdict = "ok" if good else "FAILED"
            codes = dict(outcome.exit_codes)
            print(f"{where}: {verdict}, {ended} after {outcome.seconds:.1f} s, status {codes}", flush=True)
            if not good and options.cured and not options.out:
                for log in sorted(out.rglob("*.log")):
                    print(log.read_text(encoding="utf-8", errors="replace")[-2000:])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
