"""The ranks of the job that run on this node: found in the bundle as they come, and noticed at the moment they end.

They are nobody's children here, so their exit status is read from /proc in the moment between their end and their parent's noticing;
a launcher that is quicker leaves only what the rank itself wrote down.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phalanx.embedded.rank import LEAVING
from phalanx.model import bundle as layout

_PIDFD_GETFD = 438  # the number of the system call, the same on all machines
_STATUS = 49  # of the fields of /proc/PID/stat that follow the name: the exit status


@dataclass(slots=True)
class LocalRank:
    """A process that said in the bundle which rank it is."""

    rank: int
    pid: int
    told: dict[str, Any]
    watched: int  # a descriptor that becomes readable when the process ends
    stderr: int | None = None
    code: int | None = None
    ended: bool = False


def stderr_of(pid: int, pidfd: int) -> int | None:
    """The standard error of another process, to write to; None where that cannot be had.

    Of a file we take the process's own descriptor: opened anew it would have a place of its own in the file, and what the job prints next
    (`> train.log`) would overwrite what we wrote. Pipes and terminals are opened anew, so as not to block on them.
    """
    path = f"/proc/{pid}/fd/2"
    with contextlib.suppress(OSError):
        if pidfd >= 0 and stat.S_ISREG(Path(path).stat().st_mode):
            shared = ctypes.CDLL(None).syscall(_PIDFD_GETFD, pidfd, 2, 0)
            if shared >= 0:
                return int(shared)
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_APPEND | os.O_NOCTTY)
    return None  # a socket cannot be opened so


@dataclass(slots=True)
class LocalRanks:
    """All of them, by rank."""

    attempt: Path
    host: str
    known: dict[int, LocalRank] = field(default_factory=dict)

    def look_for_more(self) -> list[LocalRank]:
        """Ranks that have come since."""
        found = []
        for folder in sorted(self.attempt.glob("rank*")):
            if folder.name[4:].isdigit() and int(folder.name[4:]) not in self.known:
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                    told = json.loads((folder / layout.PROCESS).read_text(encoding="utf-8"))
                    if told["host"] == self.host:
                        found.append(self._take_in(int(folder.name[4:]), told))
        return found

    def _take_in(self, rank: int, told: dict[str, Any]) -> LocalRank:
        pid = int(told["pid"])
        try:
            one = LocalRank(rank, pid, told, os.pidfd_open(pid))
        except ProcessLookupError:
            one = LocalRank(rank, pid, told, -1, code=self._code(rank, None), ended=True)
        one.stderr = stderr_of(pid, one.watched)
        self.known[rank] = one
        return one

    @property
    def living(self) -> dict[int, int]:
        """Processes by rank."""
        return {rank: one.pid for rank, one in sorted(self.known.items()) if not one.ended}

    @property
    def expected(self) -> int | None:
        """How many ranks this node has, where a launcher said so."""
        return next((int(one.told["ranks_here"]) for one in self.known.values() if one.told.get("ranks_here")), None)

    @property
    def size(self) -> int:
        """How many ranks the job has."""
        return max((int(one.told.get("size") or 1) for one in self.known.values()), default=1)

    def wait(self, seconds: float) -> list[LocalRank]:
        """Those that have ended; waits for the first of them, for so long."""
        poller = select.poll()
        by_descriptor = {one.watched: one for one in self.known.values() if not one.ended}
        for descriptor in by_descriptor:
            poller.register(descriptor, select.POLLIN)
        gone = [by_descriptor[descriptor] for descriptor, _ in poller.poll(seconds * 1000)]
        statuses = {one.rank: _status_of(one.pid) for one in gone}  # all at once: launchers are quick
        for one in gone:
            os.close(one.watched)
            one.code, one.ended = self._code(one.rank, statuses[one.rank]), True
        return gone

    def _code(self, rank: int, status: int | None) -> int | None:
        """Python's form of the exit status; None where nobody knows."""
        if status is not None:
            return os.waitstatus_to_exitcode(status)
        try:
            told = json.loads((layout.rank_folder(self.attempt, rank) / LEAVING).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return 1 if told.get("exception") else 0


def _status_of(pid: int) -> int | None:
    """Of a process that has ended and was not yet waited for."""
    try:
        data = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = data[data.rfind(b")") + 2 :].split()
    return int(fields[_STATUS]) if fields[0] in (b"Z", b"X") and len(fields) > _STATUS else None
