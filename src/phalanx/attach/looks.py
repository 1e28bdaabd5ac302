"""Several looks at the ranks over a few seconds: which of them move, which work, which wait, and for how long they have been quiet.

Nothing is injected and no signal is sent. Stacks are sampled without pausing the ranks but once, when their variables are
read to see whether loops advance; that takes some milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from phalanx.model import Frame
from phalanx.run.watch.hearing import Hearing
from phalanx.run.watch.look import RankLook, look_at
from phalanx.run.watch.processes import children_of
from phalanx.run.watch.stacks import ProcessStacks, take_stacks
from phalanx.run.watch.standing import Doing, doing_of
from phalanx.run.watch.traffic import all_sockets, sockets_of

_LOOKS = 4
_BETWEEN_S = 0.7
_BUSY = 0.2  # of a core
_BYTES_PER_SECOND = 1 << 20
_FAULTS_PER_SECOND = 20


@dataclass(frozen=True, slots=True)
class RankMotion:
    """What several looks at one rank show."""

    rank: int
    pid: int
    doing: Doing
    call: str
    stands: bool  # the same lines of the user's code and the same values of its variables at every look
    cpu: float  # cores used, children included
    io: float  # bytes of files a second, children included
    faults: float  # pages read back in a second
    stopped: bool
    look: RankLook
    stacks: ProcessStacks

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
    """All ranks, how long they were looked at, and for how long none has heard from another (None where that is not known)."""

    ranks: Mapping[int, RankMotion]
    seconds: float
    quiet: float | None
    gone: tuple[int, ...] = ()  # ranks that ended while they were looked at

    @property
    def is_moving(self) -> bool:
        """Some rank gets on with its script."""
        return any(not one.stands for one in self.ranks.values())


def look_at_job(pids: Mapping[int, int], looks: int = _LOOKS, pause: Callable[[float], None] = time.sleep) -> JobMotion:
    """Look several times. Raises nothing for ranks that end or may not be seen."""
    began = time.monotonic()
    first = {rank: look for rank, pid in pids.items() if (look := _kernel_look(pid, None)) is not None}
    taken = [take_stacks(list(pids.values()), values=True)]
    for _ in range(looks - 2):
        pause(_BETWEEN_S)
        taken.append(take_stacks(list(pids.values()), pause=False))
    pause(_BETWEEN_S)
    taken.append(take_stacks(list(pids.values()), values=True))
    families = children_of(pids.values())
    seconds = max(time.monotonic() - began, 0.1)
    motions = {}
    for rank, before in first.items():
        last = _kernel_look(pids[rank], before, families.get(pids[rank]))
        if last is not None:
            motions[rank] = _motion(rank, pids[rank], before, last, [one[pids[rank]] for one in taken], seconds)
    gone = tuple(rank for rank in pids if rank not in motions)
    return JobMotion(motions, seconds, quiet_between(pids.values()), gone)


def _kernel_look(pid: int, before: RankLook | None, family: Sequence[int] | None = None) -> RankLook | None:
    return look_at(pid, None, Hearing(), before, time.monotonic(), family)


def _motion(
    rank: int, pid: int, before: RankLook, last: RankLook, taken: Sequence[ProcessStacks], seconds: float
) -> RankMotion:
    mains = [one.main for one in taken if one.main is not None and one.main.frames]
    newest = next((one for one in reversed(taken) if one.main is not None and one.main.frames), taken[-1])
    cpu = max(last.cpu - before.cpu, 0.0) / seconds
    # Who stands in a backward pass, or deep in the framework, and uses no processor waits for other ranks there.
    doing, call = doing_of(mains[-1].frames, True if cpu < _BUSY else None) if mains else (Doing.UNKNOWN, "")
    places = {_own_frames(main.frames) for main in mains}
    values = [main.values for main in (taken[0].main, taken[-1].main) if main is not None and main.values]
    moved = len(places) > 1 or (len(values) == 2 and _own_values(mains[0].frames, values) is True)
    return RankMotion(
        rank,
        pid,
        doing,
        call,
        not moved,
        cpu,
        max(last.signs.io - before.signs.io, 0) / seconds,
        max(last.signs.faults - before.signs.faults, 0) / seconds,
        last.process.state in "Tt",
        last,
        newest,
    )


def _own_frames(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    return tuple(frame for frame in frames if frame.is_user_code)


def _own_values(frames: Sequence[Frame], values: Sequence[Sequence[Mapping[str, str]]]) -> bool:
    """Whether a variable of the user's functions changed between two looks."""
    first, last = values
    return any(one != other for frame, one, other in zip(frames, first, last, strict=False) if frame.is_user_code)


def quiet_between(pids: Iterable[int]) -> float | None:
    """Seconds since any of these processes got data from another one of them; None where they have no such connection,
    or the kernel does not say. What does not pass a socket (shared memory, InfiniBand) is not seen."""
    numbers = list(pids)
    try:
        now = {one.inode: one for one in all_sockets()}
    except OSError:
        return None
    owners = {now[inode].local: pid for pid in numbers for inode in sockets_of(pid) if inode in now}
    between = [
        one
        for one in now.values()
        if one.local in owners and owners.get(one.peer, owners[one.local]) != owners[one.local]
    ]
    return min((one.idle for one in between), default=None)
