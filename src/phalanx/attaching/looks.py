"""Several looks at the ranks over a few seconds: which of them move, which work, which wait, and for how long they have been quiet.

Nothing is injected and no signal is sent. Ranks are paused for some milliseconds at the first and the last look, when their
variables are read to see whether loops advance; between them stacks are sampled without pausing. A rank that seems to turn in a loop
while others wait is looked at some more times with its variables.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, repeat

from phalanx.attaching.ray_train import with_training_thread
from phalanx.attaching.signs_of_life import Link, Outputs, growth, links_of, quiet_of
from phalanx.model import Frame
from phalanx.run.watch.look import RankLook, look_at
from phalanx.run.watch.network import Connection, Tables, connections_of
from phalanx.run.watch.output_progress import OutputProgress
from phalanx.run.watch.processes import children_of, python_children
from phalanx.run.watch.rank_position import Doing, RankPosition, position_of, script_threads
from phalanx.run.watch.spinning import looks_at, stays_in_few_lines
from phalanx.run.watch.stacks import ProcessStacks, Thread, take_stacks

_LOOKS = 4
_BETWEEN_S = 0.7
_BUSY = 0.2  # of a core
_BYTES_PER_SECOND = 1 << 20
_FAULTS_PER_SECOND = 20
_TALK = 32 << 10  # bytes a second: what stores and monitors say to one another is far less
_MOST_WORKERS = 4  # of one rank, whose stacks are taken; the others are alike


@dataclass(frozen=True, slots=True)
class RankMotion:
    """What several looks at one rank show."""

    pid: int
    position: RankPosition
    stands: bool  # the same lines of the user's code and the same values of its variables at every look
    cpu: float  # cores used, children included
    io: float  # bytes of files a second, children included
    faults: float  # pages read back in a second
    stopped: bool
    threads: tuple[Thread, ...]  # the main thread at each look
    stacks: ProcessStacks  # of all threads at the last look
    workers: tuple[ProcessStacks, ...] = ()
    connections: tuple[Connection, ...] = ()
    turns: tuple[Thread, ...] = ()  # more looks with variables, where it may turn in a loop that gets nowhere

    @property
    def doing(self) -> Doing:
        """What the rank does, as far as its stack tells."""
        return self.position.doing

    @property
    def is_working(self) -> bool:
        """It computes, or reads and writes. A rank that waits in a collective may use the processor for waiting."""
        if self.doing in (Doing.COLLECTIVE, Doing.CONNECT):
            return False
        return self.cpu >= _BUSY or self.io >= _BYTES_PER_SECOND or self.faults >= _FAULTS_PER_SECOND

    @property
    def is_waiting(self) -> bool:
        """It waited for other ranks, at the same place, whenever it was looked at."""
        return self.stands and self.doing in (Doing.COLLECTIVE, Doing.CONNECT)


@dataclass(frozen=True, slots=True)
class JobMotion:
    """The ranks, how long they were looked at, and for how long none has heard from another (None where that is not known)."""

    ranks: Mapping[int, RankMotion]
    seconds: float
    quiet: float | None
    links: tuple[Link, ...] = ()  # at the last look
    traffic: float = 0.0  # bytes a second between ranks
    steps: int = 0  # by which the output is further

    @property
    def is_moving(self) -> bool:
        """Some rank gets on with its script."""
        return self.steps > 0 or self.talks or any(not one.stands for one in self.ranks.values())

    @property
    def talks(self) -> bool:
        """Ranks exchange data. Horovod's never stop talking, also while they wait."""
        frames = (frame for one in self.ranks.values() for thread in one.threads[-1:] for frame in thread.frames)
        return self.traffic >= _TALK and not any("horovod/" in frame.path for frame in frames)


def look_at_job(
    pids: Mapping[int, int], size: int, looks: int = _LOOKS, pause: Callable[[float], None] = time.sleep
) -> JobMotion:
    """Look several times. Ranks that end meanwhile are left out; of those that may not be seen only the kernel's figures are known."""
    began = time.monotonic()
    links, outputs = links_of(pids), Outputs(pids.values())
    numbers = list(pids.values())
    families = children_of(numbers)
    first = {rank: look for rank, pid in pids.items() if (look := _kernel_look(pid, None, families[pid])) is not None}
    taken = [_stacks(numbers, values=True)]
    for _ in range(looks - 2):
        pause(_BETWEEN_S)
        taken.append(_stacks(numbers, pause=False))
    pause(_BETWEEN_S)
    families = children_of(numbers)
    workers = {pid: list(python_children(family))[:_MOST_WORKERS] for pid, family in families.items()}
    taken.append(_stacks(numbers, values=True))
    helpers = take_stacks([worker for found in workers.values() for worker in found], values=True)
    helpers |= take_stacks([pid for pid, one in helpers.items() if one.error], pause=False)
    seconds = max(time.monotonic() - began, 0.1)
    motions, tables = dict[int, RankMotion](), Tables()
    for rank, before in first.items():
        pid = pids[rank]
        last = _kernel_look(pid, before, families.get(pid))
        if last is not None:
            below = tuple(helpers[worker] for worker in workers.get(pid, ()))
            connections = tuple(connections_of(rank, pid, tables))
            motions[rank] = _motion(rank, before, last, [one[pid] for one in taken], below, connections, seconds, size)
    motions |= _looked_at_longer(motions)
    now = links_of(pids)
    return JobMotion(motions, seconds, quiet_of(now), now, growth(links, now) / seconds, outputs.steps())


def with_moving_data(motion: JobMotion, before: JobMotion) -> JobMotion:
    """A rank does not stand still while what makes its data moves, though it waits at one line whenever one looks."""
    moving = {
        rank: replace(one, stands=False)
        for rank, one in motion.ranks.items()
        if one.doing is Doing.DATA and rank in before.ranks and _data_makers(one) != _data_makers(before.ranks[rank])
    }
    return replace(motion, ranks={**motion.ranks, **moving}) if moving else motion


def _data_makers(one: RankMotion) -> list[list[tuple[Frame, Mapping[str, str]]]]:
    """The user's frames, with their variables, in all threads and processes that make the data of a rank."""
    threads = [*script_threads(one.stacks), *(worker.main for worker in one.workers if worker.main is not None)]
    return [
        [
            (frame, told)
            for frame, told in zip(thread.frames, chain(thread.values, repeat({})), strict=False)
            if frame.is_user_code
        ]
        for thread in threads
    ]


def _looked_at_longer(motions: Mapping[int, RankMotion]) -> dict[int, RankMotion]:
    """Ranks that use the processor in a few lines, while others wait, with what more looks at their variables show."""
    if not any(one.is_waiting for one in motions.values()):
        return {}
    turning = {rank: one for rank, one in motions.items() if one.is_working and stays_in_few_lines(one.threads)}
    seen = looks_at([one.pid for one in turning.values()], values=True) if turning else {}
    return {rank: replace(one, turns=tuple(seen[one.pid])) for rank, one in turning.items()}


def _stacks(pids: Sequence[int], *, pause: bool = True, values: bool = False) -> dict[int, ProcessStacks]:
    taken = take_stacks(pids, pause=pause, values=values)
    return {pid: with_training_thread(stacks) for pid, stacks in taken.items()}


def _kernel_look(pid: int, before: RankLook | None, family: Sequence[int] | None) -> RankLook | None:
    return look_at(pid, None, OutputProgress(), before, time.monotonic(), family, closely=True)


def _motion(
    rank: int,
    before: RankLook,
    last: RankLook,
    taken: Sequence[ProcessStacks],
    workers: tuple[ProcessStacks, ...],
    connections: tuple[Connection, ...],
    seconds: float,
    size: int,
) -> RankMotion:
    newest = next((one for one in reversed(taken) if one.main is not None and one.main.frames), taken[-1])
    threads = tuple(one.main for one in taken if one.main is not None and one.main.frames)
    # or wanted: on a machine that others use, too, a rank that computes may get little
    cpu = max(last.signs.cpu - before.signs.cpu, last.signs.demand - before.signs.demand, 0.0) / seconds
    is_idle = cpu < _BUSY
    # Who is in a backward pass, or deep in the framework, and uses no processor waits for other ranks there.
    outstanding = True if is_idle else None
    position = position_of(rank, newest, outstanding=outstanding, workers=workers, is_idle=is_idle, size=size)
    return RankMotion(
        last.process.pid,
        position,
        not has_moved(threads),
        cpu,
        max(last.signs.io - before.signs.io, 0) / seconds,
        max(last.signs.faults - before.signs.faults, 0) / seconds,
        # At both ends: another tool that takes a stack stops a process for milliseconds, too.
        before.process.state in "Tt" and last.process.state in "Tt",
        threads,
        newest,
        workers,
        connections,
    )


def has_moved(looks: Sequence[Thread]) -> bool:
    """Whether the user's part of the stack, or a variable of the user's functions, differs between looks at a thread."""
    if len({tuple(frame for frame in look.frames if frame.is_user_code) for look in looks}) > 1:
        return True
    with_values = [look for look in looks if look.values]
    return any(
        told != other
        for one, following in pairwise(with_values)
        for frame, told, other in zip(one.frames, one.values, following.values, strict=False)
        if frame.is_user_code
    )


def own_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame of the user's own code."""
    return next((frame for frame in reversed(frames) if frame.is_user_code), None)
