"""Finds out why a process died: which signal, and what the kernel, its control group and shared memory say about it."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from phalanx.model import Frame
from phalanx.model.facts import make_fact
from phalanx.run.observer import Observation
from phalanx.run.watch.control_groups import MemoryGroup, folder_of, read_group
from phalanx.run.watch.kernel_log import Fault, KernelLog
from phalanx.run.watch.look import RankLook
from phalanx.sources.readers.stacks import frame_of

_SHARED = "/dev/shm"
_FULL = 0.9  # of shared memory
_GROUPS_EVERY_S = 3.0
_FAULTED = {"segfault": "a segmentation fault", "trap invalid opcode": "an illegal instruction"}
_STACK_BEGINS = re.compile(rb"^(?:Current thread 0x|Stack \(most recent)")


class DeathWatch:
    """Keeps what must be known before a death to explain it afterwards."""

    def __init__(self, log: KernelLog | None = None) -> None:
        self._log = log or KernelLog()
        self._groups: dict[int, tuple[Path, int]] = {}  # by pid: its group's folder, kills when it began
        self._groups_read = 0.0
        self._shared_peak = 0
        self._shared_size = 0
        self._family: dict[int, int] = {}  # every child that was seen, and its rank
        self._told: set[int] = set()

    def begin(self, pids: Iterable[int]) -> None:
        """The ranks run now."""
        self._note_groups(pids)

    def sample(self, looks: Iterable[RankLook]) -> None:
        """Once a tick."""
        try:
            shared = os.statvfs(_SHARED)
        except OSError:
            pass
        else:
            self._shared_size = shared.f_blocks * shared.f_frsize
            self._shared_peak = max(self._shared_peak, (shared.f_blocks - shared.f_bfree) * shared.f_frsize)
        now = time.monotonic()
        if now - self._groups_read >= _GROUPS_EVERY_S:
            self._groups_read = now
            self._note_groups(look.process.pid for look in looks)

    def children_killed(self, looks: Mapping[int, RankLook]) -> list[Observation]:
        """Workers that the kernel killed: their rank only sees that they are gone."""
        for rank, look in looks.items():
            self._family.update(dict.fromkeys(look.children, rank))
        self._log.read()
        found = []
        for pid in (self._log.kills.keys() | self._log.faults.keys()) & self._family.keys() - self._told:
            self._told.add(pid)
            rank = self._family[pid]
            why = self._for_memory(pid) or self._for_fault(self._log.faults.get(pid)) or {}
            text = f"a child process of rank {rank} (pid {pid}) died: {why.get('text', 'unknown')}"
            fields = {"cause": why.get("cause"), "why": why.get("text"), "library": why.get("library"), "child": True}
            facts = (make_fact("rank.died", fields, ranks=(rank,), source="watch"),)
            found.append(Observation("death", (rank,), text, {"pid": pid, "child": True, **why}, facts))
        return found

    def reason(self, pid: int, code: int, look: RankLook | None, last: Iterable[bytes]) -> dict[str, Any]:
        """What is known of a rank's death, by Python's form of its code; empty for a plain exit."""
        number = -code if code < 0 else code - 128 if 128 < code <= 128 + 64 else 0
        if not number:
            return {}
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        self._log.read()
        found: dict[str, Any] = {"signal": name, "text": f"{name}"}
        if look is not None:
            found["memory"] = look.memory
            found["peak_memory"] = look.peak
        stack = _last_stack(last)
        if stack:
            found["stack"] = [f"{frame.function} at {frame.file}:{frame.line}" for frame in stack[:12]]
        found |= self._explain(pid, number, name, stack)
        return found

    def close(self) -> None:
        """Release the kernel's log."""
        self._log.close()

    def _explain(self, pid: int, number: int, name: str, stack: list[Frame]) -> dict[str, Any]:
        place = _place(stack)
        if number == signal.SIGKILL:
            return self._for_memory(pid) or self._killed_by_somebody(name)
        if number == signal.SIGBUS:
            return self._for_shared_memory() | {"place": place} if place else self._for_shared_memory()
        if number in (signal.SIGSEGV, signal.SIGILL):
            fault = self._log.faults.get(pid) or self._only_fault()
            found = self._for_fault(fault) or {
                "cause": "segmentation-fault" if number == signal.SIGSEGV else "illegal-instruction",
                "text": _FAULTED["segfault" if number == signal.SIGSEGV else "trap invalid opcode"],
            }
            if place:
                found |= {"place": place, "text": f"{found['text']}, while it was in {place}"}
            return found
        if number == signal.SIGABRT:
            return {"cause": "abort", "text": "it aborted itself" + (f", in {place}" if place else "")}
        if number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            return {"cause": "asked-to-end", "text": f"somebody asked it to end ({name})"}
        return {}

    def _for_memory(self, pid: int) -> dict[str, Any] | None:
        """The kernel's word if it can be read; else the group's counter, which does not name a process."""
        group = self._group(pid)
        kill = self._log.kills.get(pid)
        if kill is not None:
            limit = kill.limit or (group.limit if group is not None and kill.of_group else None)
            whose = f"its control group's limit of {_size(limit)} was reached" if kill.of_group and limit else ""
            whose = whose or (
                "its control group's limit was reached" if kill.of_group else "the machine ran out of memory"
            )
            found = {"cause": "oom-cgroup" if kill.of_group else "oom-machine", "resident": kill.resident}
            found["text"] = f"killed by the kernel for memory: {whose}, and it held {_size(kill.resident)}"
            return found | ({"limit": limit} if limit else {})
        if group is not None and group.kills > self._groups[pid][1] and not self._log.readable:
            told = f" of {_size(group.limit)}" if group.limit else ""
            text = f"killed, most likely for memory: the limit{told} of its control group was reached since it began"
            return {"cause": "oom-cgroup", "text": text, **({"limit": group.limit} if group.limit else {})}
        return None

    def _killed_by_somebody(self, name: str) -> dict[str, Any]:
        if self._log.readable:
            return {"cause": "killed", "text": f"somebody sent {name}; the kernel did not kill it for memory"}
        needs = "the kernel's log may not be read here: whether it was for memory is not known (try `dmesg`)"
        return {"cause": "unknown", "text": f"{name}; {needs}"}

    def _for_shared_memory(self) -> dict[str, Any]:
        figures = f"{_size(self._shared_peak)} of {_size(self._shared_size)}"
        data = {"shm_peak": self._shared_peak, "shm_size": self._shared_size}
        if self._shared_size and self._shared_peak >= _FULL * self._shared_size:
            return {"cause": "shm-full", "text": f"a bus error: {_SHARED} was full ({figures} used)", **data}
        return {"cause": "bus-error", "text": f"a bus error; {_SHARED} had at most {figures} used", **data}

    def _for_fault(self, fault: Fault | None) -> dict[str, Any] | None:
        if fault is None:
            return None
        cause = "illegal-instruction" if "opcode" in fault.kind else "segmentation-fault"
        where = f" in {fault.library}" if fault.library else ""
        return {"cause": cause, "text": f"{_FAULTED.get(fault.kind, fault.kind)}{where}", "library": fault.library}

    def _only_fault(self) -> Fault | None:
        """The kernel names the thread, not the process: one fault that belongs to nobody else is this one's."""
        left = [fault for pid, fault in self._log.faults.items() if pid not in self._family]
        return left[0] if len(left) == 1 else None

    def _group(self, pid: int) -> MemoryGroup | None:
        return read_group(self._groups[pid][0]) if pid in self._groups else None

    def _note_groups(self, pids: Iterable[int]) -> None:
        for pid in pids:
            folder = folder_of(pid)
            if folder is not None and (pid not in self._groups or self._groups[pid][0] != folder):
                found = read_group(folder)
                self._groups[pid] = (folder, found.kills if found is not None else 0)


def _last_stack(last: Iterable[bytes]) -> list[Frame]:
    """What faulthandler wrote of the thread that crashed, innermost frame first."""
    frames: list[Frame] = []
    inside = False
    for line in last:
        if _STACK_BEGINS.match(line):
            inside, frames = True, []
        elif inside and (frame := frame_of(line.decode("utf-8", "replace"))) is not None:
            frames.append(frame)
        elif line.strip():
            inside = False
    return frames


def _place(stack: list[Frame]) -> str:
    mine = next((frame for frame in stack if frame.is_user_code), stack[0] if stack else None)
    return f"{mine.function}() at {mine.place}" if mine is not None else ""


def _size(amount: int | None) -> str:
    value = float(amount or 0)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
