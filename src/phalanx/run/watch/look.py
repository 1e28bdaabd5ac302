"""One look at one rank: the kernel's figures, its heartbeat and what it said, as signs for those that judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phalanx.run.watch.heartbeat import Heartbeat, HeartbeatFile
from phalanx.run.watch.output_progress import OutputProgress
from phalanx.run.watch.processes import (
    InOut,
    ProcessSample,
    demand_of,
    family_of,
    private_memory,
    sample_io,
    sample_process,
)
from phalanx.run.watch.stall import Signs
from phalanx.run.watch.threads import ThreadSample, sample_threads, work_between


@dataclass(frozen=True, slots=True)
class RankLook:
    """A rank at one moment. Counters only grow, also when a child ends."""

    time: float
    process: ProcessSample
    beat: Heartbeat | None
    io: InOut | None
    demand: float  # seconds that the main thread ran or was ready to
    delay: float  # of these, ready only
    cpu: float  # with children
    reaped: float  # of the family's children that have ended
    memory: int  # with children
    peak: int  # of memory
    lines: int
    signs: Signs
    children: Mapping[int, ProcessSample] = field(default_factory=dict)
    wants: Mapping[int, float] = field(default_factory=dict)  # each child's demand
    wanted: float = 0.0  # demand of all children, also of those that have ended
    moved: Mapping[int, int] = field(default_factory=dict)  # bytes of each child's files, where they were looked at
    moved_below: int = 0  # of all children, since they were first looked at
    threads: Mapping[int, ThreadSample] = field(default_factory=dict)  # where they were looked at
    work: float = 0.0  # the part of `cpu` that is not of threads that only ask whether there is something to do

    def as_sample(self) -> dict[str, Any]:
        """What goes into samples.jsonl."""
        found: dict[str, Any] = {
            "state": self.process.state,
            "cpu_s": round(self.cpu, 2),
            "memory": self.memory,
            "threads": self.process.threads,
            "children": len(self.children),
            "major_faults": self.process.major_faults,
            "lines": self.lines,
        }
        if self.io is not None:
            found.update(read=self.io.read, written=self.io.written)
        if self.beat is not None:
            found.update(enqueued=self.beat.enqueued, completed=self.beat.completed)
        return found


def look_at(
    pid: int,
    file: HeartbeatFile | None,
    output: OutputProgress,
    before: RankLook | None,
    now: float,
    family: Sequence[int] | None = None,
    traffic: int | None = None,
    *,
    closely: bool = False,
) -> RankLook | None:
    """The rank as it is now; None if its process is gone or has ended. `family` is all its children, `traffic` what went through
    their sockets, if known: looked for when nothing moves. `closely`: each thread, too."""
    process = sample_process(pid)
    if process is None or process.state in "ZX":
        return None
    children = _living(family_of(pid) if family is None else family)
    wants = {child: (demand_of(child) or (0.0, 0.0))[0] for child in children}
    moved = {child: _bytes_of(sample_io(child)) for child in children} if family is not None else {}
    threads = sample_threads(pid) if closely else {}
    cpu, reaped, wanted, moved_below, peak = process.cpu, process.reaped, 0.0, 0, 0
    work = cpu
    if before is not None:
        old = before.children
        own, below = max(process.cpu - before.process.cpu, 0.0), _gained(_cpu(children), _cpu(old))
        cpu = before.cpu + own + below
        work = before.work + work_between(pid, before.threads, threads, own, now - before.time) + below
        reaped = before.reaped + max(process.reaped - before.process.reaped, 0.0)
        reaped += _gained(_reaped(children), _reaped(old))
        wanted = before.wanted + _gained(wants, before.wants)
        moved_below = before.moved_below + int(_gained(moved, before.moved))
        peak = before.peak
    memory = process.memory + sum(private_memory(child) for child in children)
    beat = (file.read() if file is not None else None) or (before.beat if before is not None else None)
    demand, delay = demand_of(pid) or (0.0, 0.0)
    io = sample_io(pid)
    # time of short-lived children counts, too, such as compilers', twice at worst; and so does one that gets no processor
    signs = _signs(
        process, children, beat, output, work + reaped, demand + wanted, _bytes_of(io) + moved_below, traffic
    )
    counted = (demand, delay, cpu, reaped, memory, max(memory, peak), output.lines)
    return RankLook(now, process, beat, io, *counted, signs, children, wants, wanted, moved, moved_below, threads, work)


def _signs(
    process: ProcessSample,
    children: Mapping[int, ProcessSample],
    beat: Heartbeat | None,
    output: OutputProgress,
    cpu: float,
    demand: float,
    io: int,
    traffic: int | None,
) -> Signs:
    progress = beat.progress if beat is not None else 0
    outstanding = [one for one in (beat.groups.values() if beat is not None else ()) if one.enqueued > one.completed]
    return Signs(
        progress=progress + output.news,
        calls=progress + output.advances,
        steps=output.passed,
        cpu=cpu,
        demand=demand,
        io=io,
        traffic=traffic,
        faults=process.major_faults + sum(child.major_faults for child in children.values()),
        lines=output.lines,
        stopped=process.state == "T",
        blocked=process.state == "D" or any(child.state == "D" for child in children.values()),
        spinning=any(one.started > 0 for one in outstanding),
        may_spin=any(one.started == 0 for one in outstanding),
        connected=beat.connected if beat is not None else None,
    )


def _cpu(children: Mapping[int, ProcessSample]) -> dict[int, float]:
    return {child: one.cpu for child, one in children.items()}


def _reaped(children: Mapping[int, ProcessSample]) -> dict[int, float]:
    return {child: one.reaped for child, one in children.items()}


def _living(family: Iterable[int]) -> dict[int, ProcessSample]:
    samples = ((child, sample_process(child)) for child in family)
    return {child: sample for child, sample in samples if sample is not None and sample.state not in "ZX"}


def _gained(now: Mapping[int, float], before: Mapping[int, float]) -> float:
    """By how much the children's counters grew. What a child did before it was first seen is not news."""
    return sum(max(count - before.get(child, count), 0) for child, count in now.items())


def _bytes_of(io: InOut | None) -> int:
    return io.read + io.written + io.characters if io is not None else 0
