"""Who ended, and how: the words of torchrun, torch.distributed.launch, mpirun, horovodrun, srun and DataLoader.

  rank      : 2 (local_rank: 2)
  exitcode  : -9 (pid: 4242)
mpirun noticed that process rank 2 with PID 4242 on node node0 exited on signal 9 (Killed).
srun: error: node0: task 2: Killed
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from phalanx.model import Event, EventKind
from phalanx.model.lazy import lazy
from phalanx.sources.window import Window

TRIGGERS = (
    "closing signal SIG",
    "(local_rank: ",
    "failed (exitcode: ",
    "returned non-zero exit status",
    "noticed that process rank",
    "Process name: ",
    "exited on signal",
    "exit with status code",
    "srun: error: ",
    "SignalException: Process",
    "ProcessExitedException: process ",
    "-- Process ",
    "Child process with PID ",
    "exits with return code = ",
    "Killed",
)

CLOSING = "closing-signal"  # the launcher ends a process that still runs
_CLOSES = lazy(r"Sending process (?P<pid>\d+) closing signal SIG")
_TORCHRUN_RANK = lazy(r"^\s*rank\s*:\s*(?P<rank>\d+) \(local_rank: (?P<local>\d+)\)")
_TORCHRUN_TIME = lazy(r"^\s*time\s*:\s*(?P<time>\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)")
_TORCHRUN_HOST = lazy(r"^\s*host\s*:\s*(?P<host>[\w.-]+)")
_TORCHRUN_CODE = lazy(r"^\s*exitcode\s*:\s*(?P<code>-?\d+)(?: \(pid: (?P<pid>\d+)\))?")
_ONE_LINE: tuple[re.Pattern[str], ...] = (
    lazy(r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+) \(pid: (?P<pid>\d+)\)"),
    lazy(r"--local[_-]rank=(?P<rank>\d+).*returned non-zero exit status (?P<code>-?\d+)"),
    lazy(r"\[rank: (?P<rank>\d+)\] Child process with PID (?P<pid>\d+) terminated with code (?P<code>-?\d+)"),
    lazy(r"noticed that process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node \S+ exited on signal (?P<signal>\d+)"),
    lazy(r"[Pp]rocess (?P<rank>\d+) (?:exit|terminated) with (?:(?:exit|status) code (?P<code>-?\d+)|signal (?P<name>SIG\w+))"),
)  # fmt: skip
# DeepSpeed prints the command of the process that it started last, not of the one that ended.
_DEEPSPEED = lazy(r"\] exits with return code = (?P<code>-?\d+)")
# What a shell says of a program that was killed: alone, or behind its own place and the process.
_SHELL = lazy(r"^(?:\S+: line \d+: +(?P<pid>\d+) )?Killed(?: {2,}(?P<command>\S.*))?$")
_RANK_IN_COMMAND = lazy(r"\b(?:RANK|OMPI_COMM_WORLD_RANK|SLURM_PROCID)=(?P<rank>\d+)|--rank[= ](?P<option>\d+)\b")
_SRUN = lazy(r"srun: error: (?P<host>[\w.,\[\]-]+): tasks? (?P<tasks>[\d,-]+): (?P<how>.+)$")
_SRUN_CODE = lazy(r"Exited with exit code (\d+)")
_SRUN_HOW = {
    "Segmentation fault": signal.SIGSEGV,
    "Killed": signal.SIGKILL,
    "Terminated": signal.SIGTERM,
    "Aborted": signal.SIGABRT,
    "Bus error": signal.SIGBUS,
    "Out Of Memory": signal.SIGKILL,
}
_MPI_NAME = lazy(r"Process name:\s*(?:\[\[\d+,\d+\],(?P<rank>\d+)\]|\[\S+?,(?P<other>\d+)\]|(?P<bare>\d+)(?![\w.\[]))")
_MPI_CODE = lazy(r"Exit code:\s*(?P<code>-?\d+)")


def read(window: Window) -> Iterator[Event]:
    """An exit event for the rank that the line, or the record it opens, names."""
    return next((found for form in _FORMS if (found := form(window)) is not None), iter(()))


def _of_torchrun(window: Window) -> Iterator[Event] | None:
    if not (match := _TORCHRUN_RANK.match(window.text)):
        return None
    for _, following in window.following(4):
        if code := _TORCHRUN_CODE.match(following):
            said = f"rank {match['rank']} exited with {code['code']}"
            pid = int(code["pid"]) if code["pid"] else None
            event = _exit(window, int(match["rank"]), int(code["code"]), said, pid, _time_above(window))
            host = next((found["host"] for text in window.preceding(2) if (found := _TORCHRUN_HOST.match(text))), None)
            return iter((replace(event, data={**event.data, "host": host, "local": int(match["local"])}),))
    return iter(())


def _of_closing(window: Window) -> Iterator[Event] | None:
    if not (match := _CLOSES.search(window.text)):
        return None
    return iter((window.event(EventKind.LINE, CLOSING, data={"pid": int(match["pid"])}),))


def _of_one_line(window: Window) -> Iterator[Event] | None:
    pattern, match = next(((one, found) for one in _ONE_LINE if (found := one.search(window.text))), (None, None))
    if pattern is None or match is None:
        return None
    groups = match.groupdict()
    code = int(groups["code"]) if groups.get("code") else -_signal_number(groups)
    pid = int(groups["pid"]) if groups.get("pid") else None
    rank = _global(window, int(match["rank"]), pid) if "local" in pattern.pattern else int(match["rank"])
    return iter((_exit(window, rank, code, window.text.strip(), pid),))


def _of_deepspeed(window: Window) -> Iterator[Event] | None:
    if not (match := _DEEPSPEED.search(window.text)):
        return None
    return iter((_exit(window, None, int(match["code"]), window.text.strip(), None),))


def _of_srun(window: Window) -> Iterator[Event] | None:
    if not (match := _SRUN.search(window.text)):
        return None
    if window.dialect.labels.ranks_by_pid:
        return iter(())  # tasks are launchers here, which tell of their ranks themselves
    for words, number in _SRUN_HOW.items():
        if words in match["how"]:
            return (_exit(window, task, -number, window.text.strip(), None) for task in _tasks(match["tasks"]))
    if not (code := _SRUN_CODE.search(match["how"])):
        return None
    return (_exit(window, task, int(code[1]), window.text.strip(), None) for task in _tasks(match["tasks"]))


def _of_shell(window: Window) -> Iterator[Event] | None:
    if not (match := _SHELL.match(window.text.strip())):
        return None
    told = _RANK_IN_COMMAND.search(match["command"] or "")
    rank = int(told["rank"] or told["option"]) if told is not None else window.speaker.rank
    return iter(() if rank is None else (_exit(window, rank, -signal.SIGKILL, window.text.strip(), None),))


def _of_mpi(window: Window) -> Iterator[Event] | None:
    if not (match := _MPI_NAME.search(window.text)):
        return None
    rank = next(int(value) for value in match.groups() if value is not None)
    for _, following in window.following(4):
        if code := _MPI_CODE.search(following):
            return iter((_exit(window, rank, int(code["code"]), f"process {rank} exited with {code['code']}", None),))
    return None


_FORMS = (_of_torchrun, _of_closing, _of_one_line, _of_deepspeed, _of_srun, _of_shell, _of_mpi)


def _global(window: Window, local: int, pid: int | None) -> int | None:
    """The global rank of a local one: by its process, or by where its node's ranks begin; None where there are several nodes."""
    labels = window.dialect.labels
    if pid is not None and pid in labels.ranks_by_pid:
        return labels.ranks_by_pid[pid]
    return None if labels.several_nodes else local + (labels.offset or 0)


def _time_above(window: Window) -> float | None:
    """When the rank ended, by the record's own line, in seconds of some clock that all records of the summary share."""
    for text in window.preceding(3):
        if match := _TORCHRUN_TIME.match(text):
            try:
                return datetime.strptime(match["time"], "%Y-%m-%d_%H:%M:%S").replace(tzinfo=UTC).timestamp()
            except ValueError:  # no such time
                return None
    return None


def _signal_number(groups: dict[str, str | None]) -> int:
    if groups.get("signal"):
        return int(groups["signal"] or 0)
    name = groups.get("name") or ""
    return int(getattr(signal, name, 0))


def _tasks(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            yield from range(int(first), min(int(last or first), int(first) + 4096) + 1)


def _exit(window: Window, rank: int | None, code: int, text: str, pid: int | None, at: float | None = None) -> Event:
    if pid is not None and rank is not None:
        window.dialect.ranks_by_pid[pid] = rank
    return window.event(
        EventKind.EXIT, "exit", text=text, rank=rank, data={"code": normal_code(code), "pid": pid, "at": at}
    )


def normal_code(code: int) -> int:
    """One form for death by a signal: 137 (a shell's) and -9 (Python's) are both -9."""
    return 128 - code if 128 < code <= 128 + 64 else code
