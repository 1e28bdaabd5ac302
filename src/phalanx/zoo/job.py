"""One job of the zoo as real processes: started, waited for, ended in time, and none left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from phalanx.zoo.fault import FaultError, RunPlan
from phalanx.zoo.memory import Scales

PREPARE_S = 600.0
_MARK = "PHALANX_ZOO_RUN"
_POLL_S = 0.1
_USUAL_START_S = 10.0  # until a job's first word, on a machine that has time for it
# how a framework, a launcher or the interpreter begins to tell of trouble
TROUBLE = re.compile(
    rb"Traceback \(most recent call last\)|terminate called|Fatal Python error|[Ss]egmentation fault|FAILED"
    rb"|Missing ranks|exitcode|exited with non-zero|signal SIG|UNAVAILABLE|StartAbort|^Killed",
    re.MULTILINE,
)
# a line of the job itself: `phalanx run` begins with one of its own
_WORD = re.compile(rb"^(?!phalanx: )[^\n]*\S", re.MULTILINE)
# what a job may inherit: enough for pip and certificates, nothing that would change its behaviour
_INHERITED = re.compile(r"PIP_.*|SSL_CERT_.*|https?_proxy|no_proxy|TZ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. The launcher is keyed "launcher"; in the layout per-rank each rank is keyed."""

    exit_codes: Mapping[str, int]
    timed_out: bool
    seconds: float
    # from the start until the logs first told of trouble; None where they never did
    spoke_s: float | None = None
    # the most memory that its processes took together, as far as was seen
    peak_mb: int = 0
    began: float | None = None  # by the wall clock
    # from the start until the job's first word: most of it is importing, which takes as long as the machine is busy
    first_s: float | None = None
    # whether one of its processes had ended by itself when the others were cut off
    somebody_left: bool = False

    @property
    def clean(self) -> bool:
        return not self.timed_out and not any(self.exit_codes.values())


class Job:
    """One run: starts the processes, waits, and leaves none behind."""

    def __init__(
        self,
        plan: RunPlan,
        path: Sequence[Path],
        scratch: Path,
        grace_s: float,
        stop: threading.Event | None = None,
        sign: re.Pattern[bytes] = TROUBLE,
    ) -> None:
        self.plan = plan
        # folders of programs that come before the system's
        self.path = path
        self.scratch = scratch
        self.grace_s = grace_s
        # set from outside when the whole run of the zoo is to end
        self.stop = stop or threading.Event()
        # what in the logs is waited for, to tell how long it took
        self.listener = _Listener(scratch, sign)
        # launchers give their workers sessions of their own, so a process group is not enough to find
        # all that was started: every process carries this mark in its environment
        self.mark = uuid.uuid4().hex
        self.scales = Scales(lambda: marked_processes(self.mark))
        self.ports = [_free_port() for _ in range(plan.world_size + 1)]

    def execute(self) -> Outcome:
        started, began = time.monotonic(), time.time()
        processes: dict[str, subprocess.Popen[bytes]] = {}
        timed_out = somebody_left = False
        try:
            if self.plan.layout == "per-rank":
                for rank in self.plan.started_ranks:
                    processes[str(rank)] = self._start(f"rank{rank}.log", rank)
            else:
                processes["launcher"] = self._start("job.log", None)
            timed_out = not _wait(processes.values(), lambda: self._allowed_s(started), self.stop, self._look)
            somebody_left = any(process.poll() is not None for process in processes.values())
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
        self.listener.look()
        spoke_s, first_s = (
            None if at is None else at - started for at in (self.listener.heard, self.listener.heard_first)
        )
        seconds = time.monotonic() - started
        return Outcome(codes, timed_out, seconds, spoke_s, self.scales.peak_mb, began, first_s, somebody_left)

    def _allowed_s(self, started: float) -> float:
        """Its limit; a busy machine is late to start a job, and what that took is given back, up to as much again."""
        first = self.listener.heard_first
        late = 0.0 if first is None else max(0.0, first - started - _USUAL_START_S)
        return self.plan.timeout_s + min(late, self.plan.timeout_s)

    def _look(self) -> None:
        self.listener.look()
        self.scales.look()

    def prepare(self) -> None:
        """Run the commands that must have run before the job. Raises FaultError with what they printed."""
        for words in self.plan.prepare:
            process = self._start("prepare.txt", None, words)
            try:
                done = _wait([process], PREPARE_S, self.stop)
            finally:
                self._kill_the_rest([process])
            if not done or process.returncode:
                said = (self.scratch / "logs" / "prepare.txt").read_text(encoding="utf-8", errors="replace")
                raise FaultError(f"`{' '.join(words)}` failed before the job began: {said[-600:].strip()}")
        (self.scratch / "logs" / "prepare.txt").unlink(missing_ok=True)

    def _start(self, log: str, rank: int | None, words: Sequence[str] | None = None) -> subprocess.Popen[bytes]:
        environment = self._environment(rank)
        command = [self._fill(word, rank) for word in words or self.plan.command]
        # resolved by us: the search for the program must use the job's PATH, not ours
        program = shutil.which(command[0], path=environment["PATH"]) or command[0]
        if shutil.which(program, path=environment["PATH"]) is None:
            raise FaultError(f"{command[0]}: there is no such program; the fault's [needs] say what to install")
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
            "PATH": ":".join([*map(str, self.path), path]),
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
        """Put free ports, the job's folder and the rank in: `{port}`, `{port0}` … one for each rank, `{job}`, `{rank}`."""
        for number in range(self.plan.world_size):
            text = text.replace(f"{{port{number}}}", str(self.ports[number]))
        text = text.replace("{port}", str(self.ports[-1])).replace("{job}", str(self.scratch / "job"))
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


class _Listener:
    """Notes when the job first said anything, and when a sign first stood in the logs. Each look reads only what is new."""

    def __init__(self, scratch: Path, sign: re.Pattern[bytes]) -> None:
        self.folders = (scratch / "logs", scratch / "job" / "logs")
        self.sign = sign
        self.read: dict[Path, int] = {}
        self.heard: float | None = None
        self.heard_first: float | None = None

    def look(self) -> None:
        if self.heard is not None:
            return
        for file in [file for folder in self.folders for file in folder.rglob("*.log")]:
            at = self.read.get(file, 0)
            with file.open("rb") as stream:
                stream.seek(max(0, at - 200))  # a sign may have been cut by the last look
                text = stream.read()
            self.read[file] = max(0, at - 200) + len(text)
            if self.heard_first is None and _WORD.search(text):
                self.heard_first = time.monotonic()
            if self.sign.search(text):
                self.heard = time.monotonic()
                return


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


def _wait(
    processes: Collection[subprocess.Popen[bytes]],
    seconds: float | Callable[[], float],
    stop: threading.Event | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> bool:
    """Wait for all; False when some still run after that time, or when the run is to stop."""
    began = time.monotonic()
    while True:
        # a list, not a generator: every process must be polled, or it stays a zombie
        if None not in [process.poll() for process in processes]:
            return True
        allowed = seconds() if callable(seconds) else seconds
        if time.monotonic() - began >= allowed or (stop is not None and stop.is_set()):
            return False
        meanwhile()
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
