"""Finds the training jobs on this machine: which processes are ranks, of which job, and which only help a rank.

Helpers (data loader workers, resource trackers, compilers) inherit their rank's variables, and launchers may carry those of a
scheduler above them. So a rank is the uppermost Python process that has its identity, unless processes below it are ranks by
a more specific one. Ranks that no variable tells are found by the TCP connections between them (`connected`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from phalanx.attaching.identity import Identity, identities_of
from phalanx.attaching.ray_train import is_ray_process, ray_identity
from phalanx.run.watch.asking import ask_inside

_MOST = 1 << 20  # bytes of an environment or a command line that are read


@dataclass(frozen=True, slots=True)
class Process:
    """What /proc tells of a process; `variables` is None where they may not be read."""

    pid: int
    parent: int
    user: int
    program: str  # the name of the executable
    command: tuple[str, ...]
    variables: Mapping[str, str] | None
    start: int = 0  # ticks since boot

    @property
    def is_python(self) -> bool:
        """Whether it runs a Python interpreter."""
        return self.program.startswith(("python", "pypy"))


@dataclass(frozen=True, slots=True)
class FoundRank:
    """A process that is a rank. `identity.rank` is a guess where `told_by` says so."""

    process: Process
    identity: Identity
    told_by: str = "variables"  # or: order of start, arguments, stack
    host: str = ""  # empty for this machine


@dataclass(frozen=True, slots=True)
class FoundJob:
    """The ranks of one job that run on this machine, in order."""

    key: str
    ranks: tuple[FoundRank, ...]
    launcher: Process | None = None

    @property
    def size(self) -> int:
        """How many ranks the job has in all, as far as is known."""
        told = [one.identity.size for one in self.ranks if one.identity.size is not None]
        return max([*told, *(one.identity.rank + 1 for one in self.ranks)])

    @property
    def absent(self) -> tuple[int, ...]:
        """Ranks of the job that do not run here: on another machine, or ended."""
        here = {one.identity.rank for one in self.ranks}
        return tuple(rank for rank in range(self.size) if rank not in here)

    @property
    def missing(self) -> tuple[int, ...]:
        """Ranks that must run on the machines that were looked at, beside others of their node, and do not: they have ended."""
        here: set[int] = set()
        for one in self.ranks:
            count = (one.process.variables or {}).get("LOCAL_WORLD_SIZE", "")
            local = one.identity.local_rank
            if count.isdecimal() and int(count) == self.size:
                here.update(range(self.size))
            elif (
                count.isdecimal() and local is not None and one.identity.launcher == "torch"
            ):  # a node's ranks follow one another
                here.update(range(one.identity.rank - local, one.identity.rank - local + int(count)))
        return tuple(rank for rank in self.absent if rank in here)

    @property
    def script(self) -> str:
        """What the ranks run, for a person."""
        return script_of(self.ranks[0].process.command)


def script_of(command: Sequence[str]) -> str:
    """`train.py` or `-m package` of an interpreter's command line."""
    words = list(command[1:])
    while words:
        word = words.pop(0)
        if word in ("-m", "-c"):
            return f"{word} {words[0]}"[:80] if words else word
        if word in ("-W", "-X"):
            words = words[1:]
        elif not word.startswith("-"):
            return Path(word).name
    return Path(command[0].rstrip()).name if command else "?"  # Ray's titles are padded


def all_processes(wanted: Callable[[int], bool]) -> dict[int, Process]:
    """The processes of the users that are wanted, by number; what ends meanwhile is left out."""
    found = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                user = entry.stat().st_uid
            except OSError:
                continue
            if wanted(user) and (process := read_process(int(entry.name), user)) is not None:
                found[process.pid] = process
    return found


def read_process(pid: int, user: int = -1) -> Process | None:
    """One process as it is now; None if it is gone or has ended."""
    stat = _read(pid, "stat")
    fields = stat[stat.rfind(b")") + 2 :].split()
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    command = _read(pid, "cmdline")
    try:
        program = Path(f"/proc/{pid}/exe").readlink().name
    except PermissionError:  # the command line is readable for all
        program = Path(command.split(b"\0", 1)[0].decode("utf-8", "replace")).name
    except OSError:
        program = ""
    return Process(
        pid,
        int(fields[1]),
        user,
        program,
        tuple(word.decode("utf-8", "replace") for word in command.rstrip(b"\0").split(b"\0")) if command else (),
        _environment(pid),
        int(fields[19]),
    )


def _environment(pid: int) -> dict[str, str] | None:
    """None where the kernel refuses; being root is not enough for it in every container."""
    try:
        with Path(f"/proc/{pid}/environ").open("rb") as file:
            return _variables(file.read(_MOST))
    except PermissionError:
        return None
    except OSError:
        return {}


def _variables(data: bytes) -> dict[str, str]:
    pairs = (item.decode("utf-8", "replace").partition("=") for item in data.split(b"\0") if item)
    return {name: value for name, equals, value in pairs if equals}


def _read(pid: int, name: str) -> bytes:
    try:
        with Path(f"/proc/{pid}/{name}").open("rb") as file:
            return file.read(_MOST)
    except OSError:
        return b""


def jobs_by_variables(processes: Mapping[int, Process]) -> list[FoundJob]:
    """Every job whose ranks carry a launcher's variables, by the most specific of them."""
    identities = {
        pid: [told for told in _told_by(one) if told.size is not None or _has_torch(pid)]
        for pid, one in processes.items()
    }
    ranks: dict[int, Identity] = {}
    for pid, found in identities.items():
        if not found or not processes[pid].is_python:
            continue
        above = _python_parent(processes[pid], processes)
        if above is None or found[0] not in identities.get(above.pid, ()):
            ranks[pid] = found[0]
    # `srun torchrun`: the agent has the scheduler's place, its workers have torchrun's, and only they are ranks.
    agents = {
        above.pid
        for pid, identity in ranks.items()
        for above in ancestors(processes[pid], processes)
        if above.pid in ranks and ranks[above.pid].launcher != identity.launcher
    }
    groups: dict[str, list[FoundRank]] = {}
    for pid, identity in ((pid, one) for pid, one in ranks.items() if pid not in agents):
        groups.setdefault(_job_key(identity, processes[pid]), []).append(FoundRank(processes[pid], identity))
    return [make_job(key, members, processes) for key, members in groups.items()]


def _told_by(process: Process) -> list[Identity]:
    """Ray's workers inherit what a scheduler told the node's first process, which is not about them. Where variables may not be
    read, a rank that was started with PHALANX=1 tells itself."""
    if process.variables is None:
        told = ask_inside(process.pid, "who") or {}
        rank, size = told.get("rank"), told.get("size")
        if not isinstance(rank, int) or not isinstance(size, int):
            return []
        return [Identity("inside", f"inside:{process.parent}", rank, size)]
    if is_ray_process(process.command):
        return [found] if (found := ray_identity(process.pid)) is not None else []
    return identities_of(process.variables)


def _has_torch(pid: int) -> bool:
    """Whether the process has loaded PyTorch: many programs know a variable RANK."""
    return b"/libtorch" in _read(pid, "maps")


def _job_key(identity: Identity, process: Process) -> str:
    """The launcher's key; where it tells none, jobs are told apart by the process that started them."""
    return identity.job if identity.job.strip(":/") != identity.launcher else f"{identity.job}@{process.parent}"


def make_job(key: str, members: Iterable[FoundRank], processes: Mapping[int, Process]) -> FoundJob:
    """One process a rank, the oldest where several claim it, and the nearest process above all of them."""
    by_rank: dict[int, FoundRank] = {}
    for one in sorted(members, key=lambda one: one.process.start):
        by_rank.setdefault(one.identity.rank, one)
    ranks = tuple(by_rank[rank] for rank in sorted(by_rank))
    return FoundJob(key, ranks, common_ancestor([one.process for one in ranks], processes))


def common_ancestor(members: Sequence[Process], processes: Mapping[int, Process]) -> Process | None:
    """The nearest process above all of these, if it is of the same user and not the machine's first."""
    lines = [[one.pid for one in ancestors(member, processes)] for member in members]
    shared = set(lines[0]).intersection(*lines[1:]) if lines else set()
    return next((processes[pid] for pid in lines[0] if pid in shared and pid != 1), None) if lines else None


def _python_parent(process: Process, processes: Mapping[int, Process]) -> Process | None:
    return next((one for one in ancestors(process, processes) if one.is_python), None)


def ancestors(process: Process, processes: Mapping[int, Process]) -> list[Process]:
    """The processes above it, its parent first."""
    found: list[Process] = []
    while (above := processes.get(process.parent)) is not None and above not in found:
        found.append(above)
        process = above
    return found
