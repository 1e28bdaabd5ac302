"""Reads what the kernel knows of a process: state, CPU, memory, I/O, threads, children. One pass costs microseconds.

Straight from /proc, because a watch that looks twice a second at every rank must cost nothing; a process that is gone
reads as None.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """One process at one moment. Counters only grow."""

    pid: int
    parent: int
    state: str  # R running, S sleeping, D waiting for a device, T stopped, t traced, Z ended
    cpu: float  # seconds, all threads
    reaped: float  # seconds of its children that have ended
    threads: int
    memory: int  # resident bytes
    major_faults: int
    start: int  # ticks since boot: tells a process from a later one with its number


@dataclass(frozen=True, slots=True)
class InOut:
    """Bytes that reached a device, and bytes that went through reads and writes of any kind."""

    read: int
    written: int
    characters: int


def sample_process(pid: int) -> ProcessSample | None:
    """The whole process; its state is that of the thread it began with, in Python the one that runs the script."""
    data = read_file(f"/proc/{pid}/stat")
    # the name of the program stands in parentheses and may hold anything, parentheses too
    fields = data[data.rfind(b")") + 2 :].split()
    if len(fields) < 22:
        return None
    return ProcessSample(
        pid,
        int(fields[1]),
        fields[0].decode(),
        (int(fields[11]) + int(fields[12])) / _TICK,
        (int(fields[13]) + int(fields[14])) / _TICK,
        int(fields[17]),
        int(fields[21]) * _PAGE,
        int(fields[9]),
        int(fields[19]),
    )


def is_alive(pid: int) -> bool:
    """Whether the process is there and has not ended."""
    found = sample_process(pid)
    return found is not None and found.state not in "ZX"


def demand_of(pid: int) -> tuple[float, float] | None:
    """Seconds that the main thread ran or was ready to run, which a loaded machine does not change; of these, ready only."""
    fields = read_file(f"/proc/{pid}/schedstat").split()
    if len(fields) < 2:
        return None
    return (int(fields[0]) + int(fields[1])) / 1e9, int(fields[1]) / 1e9


def waits_for_thread(pid: int) -> bool:
    """Whether the main thread waits for another one (a futex), and not for time, a file or a socket; False where the kernel does not say."""
    return b"futex" in read_file(f"/proc/{pid}/wchan")


def sample_io(pid: int) -> InOut | None:
    """What the process read and wrote; None where this may not be seen."""
    found = dict(line.split(b": ", 1) for line in read_file(f"/proc/{pid}/io").splitlines() if b": " in line)
    try:
        return InOut(int(found[b"read_bytes"]), int(found[b"write_bytes"]), int(found[b"rchar"]) + int(found[b"wchar"]))
    except (KeyError, ValueError):
        return None


def children_of(pids: Iterable[int]) -> dict[int, list[int]]:
    """All descendants of each process, by one pass over /proc."""
    below: dict[int, list[int]] = {}
    try:
        entries = os.listdir("/proc")  # noqa: PTH208 - a thousand Path objects twice a second would be felt
    except OSError:
        return {pid: [] for pid in pids}
    for entry in entries:
        if entry.isdigit():
            data = read_file(f"/proc/{entry}/stat")
            fields = data[data.rfind(b")") + 2 :].split(None, 2)
            if len(fields) > 2 and fields[0] != b"Z":
                below.setdefault(int(fields[1]), []).append(int(entry))
    return {pid: _descendants(pid, below) for pid in pids}


def _descendants(pid: int, below: dict[int, list[int]]) -> list[int]:
    found: list[int] = []
    wanted = [pid]
    while wanted:
        children = below.get(wanted.pop(), [])
        found.extend(children)
        wanted.extend(children)
    return sorted(found)


def quick_children(pid: int) -> list[int] | None:
    """The children that the main thread started, from one small file; None where the kernel does not offer it."""
    data = read_file(f"/proc/{pid}/task/{pid}/children", absent=None)
    return None if data is None else [int(child) for child in data.split()]


def family_of(pid: int, most: int = 64) -> list[int]:
    """Children and their children, as far as main threads started them; `children_of` sees all, and costs more."""
    found: list[int] = []
    wanted = [pid]
    while wanted and len(found) < most:
        children = quick_children(wanted.pop()) or []
        found += children
        wanted += children
    return found[:most]


def command_of(pid: int) -> str:
    """The command line, for a person."""
    return read_file(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode("utf-8", "replace").strip()


def read_file(path: str, absent: bytes | None = b"") -> bytes:
    """The beginning of one of the kernel's small files."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return absent  # type: ignore[return-value]
    try:
        return os.read(descriptor, 16384)
    except OSError:
        return absent  # type: ignore[return-value]
    finally:
        os.close(descriptor)


def private_memory(pid: int) -> int:
    """Resident bytes that the process does not share, so that a family can be summed."""
    fields = read_file(f"/proc/{pid}/statm").split()
    return max(int(fields[1]) - int(fields[2]), 0) * _PAGE if len(fields) > 2 else 0


def python_children(pids: Iterable[int]) -> Iterable[int]:
    """Those of the processes that run Python: data loader workers and their like."""
    for pid in pids:
        try:
            program = Path(f"/proc/{pid}/exe").readlink()
        except OSError:
            continue
        if program.name.startswith("python") and "resource_tracker" not in command_of(pid):
            yield pid
