"""Follows the kernel's log for what it did to processes: killed for memory, faulted, illegal instruction.

Out of memory: Killed process 4242 (python) total-vm:9412kB, anon-rss:8012kB, file-rss:0kB, shmem-rss:0kB, UID:0 …
Memory cgroup out of memory: Killed process 4242 (python) total-vm:…
oom-kill:constraint=CONSTRAINT_MEMCG,…,oom_memcg=/job,task_memcg=/job,task=python,pid=4242,uid=0
memory: usage 102400kB, limit 102400kB, failcnt 55
python[4242]: segfault at 0 ip 00007f… sp 00007f… error 4 in libtorch_cpu.so[7f…+4000]
traps: python[4242] trap invalid opcode ip:7f… sp:7f… error:0 in libfbgemm.so[7f…+4000]
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

_KILLED = re.compile(
    r"(?P<group>Memory cgroup out of memory|Out of memory)[^:]*: Killed process (?P<pid>\d+) \((?P<name>.*?)\)"
    r"(?:.*?anon-rss:(?P<anon>\d+)kB)?(?:.*?file-rss:(?P<file>\d+)kB)?(?:.*?shmem-rss:(?P<shmem>\d+)kB)?"
)
_LIMIT = re.compile(r"memory: usage (?P<usage>\d+)kB, limit (?P<limit>\d+)kB")
_FAULT = re.compile(
    r"(?:traps: )?(?P<name>\S+)\[(?P<pid>\d+)\]:? (?P<kind>segfault|general protection(?: fault)?|trap invalid opcode|trap \w+(?: \w+)?)"
    r"(?: at (?P<address>[0-9a-f]+))?.*?(?: in (?P<library>[^\s\[]+)\[|$)"
)
_MOST = 4096  # records read at once


@dataclass(frozen=True, slots=True)
class MemoryKill:
    """The kernel killed a process for want of memory: the machine's, or that of its control group."""

    pid: int
    of_group: bool
    resident: int  # bytes
    limit: int | None


@dataclass(frozen=True, slots=True)
class Fault:
    """The kernel ended a process for what it did; `library` is where."""

    pid: int  # of the thread
    kind: str
    library: str


class KernelLog:
    """Reads records from now on. Where the log may not be read, it stays empty and says so."""

    def __init__(self, path: str = "/dev/kmsg") -> None:
        self.kills: dict[int, MemoryKill] = {}
        self.faults: dict[int, Fault] = {}
        self._limit: int | None = None
        self._descriptor: int | None = None
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError:
            self.close()

    @property
    def readable(self) -> bool:
        """Whether the kernel lets us read its log."""
        return self._descriptor is not None

    def read(self) -> None:
        """Take in what is new."""
        if self._descriptor is None:
            return
        for _ in range(_MOST):
            try:
                record = os.read(self._descriptor, 8192)
            except BrokenPipeError:  # records were overwritten before they were read: the next read goes on
                continue
            except OSError:
                return
            if not record:
                return
            self.take(record.decode("utf-8", "replace").split(";", 1)[-1].split("\n", 1)[0])

    def take(self, text: str) -> None:
        """Take in one record's text."""
        if match := _LIMIT.search(text):
            self._limit = int(match["limit"]) * 1024
        elif match := _KILLED.search(text):
            of_group = match["group"].startswith("Memory cgroup")
            resident = 1024 * sum(int(match[part] or 0) for part in ("anon", "file", "shmem"))
            pid = int(match["pid"])
            self.kills[pid] = MemoryKill(pid, of_group, resident, self._limit if of_group else None)
            self._limit = None
        elif match := _FAULT.search(text):
            pid = int(match["pid"])
            self.faults[pid] = Fault(pid, match["kind"], match["library"] or "")

    def close(self) -> None:
        """Release the log."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
