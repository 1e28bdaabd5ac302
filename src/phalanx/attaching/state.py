"""What several looks say of a job: does it hang, work, wait for a rank at work, or can nobody tell?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from phalanx.attaching.looks import JobMotion, RankMotion, own_frame
from phalanx.attaching.rights import what_to_grant
from phalanx.model import Frame
from phalanx.model.ranks import name_ranks
from phalanx.run.watch.rank_position import Doing
from phalanx.run.watch.stacks import GRANT

_WRITES = 1 << 20  # bytes a second that are worth saying


class State(StrEnum):
    """How the job is."""

    HUNG = "hung"  # ranks wait for others, and nobody works
    STOPPED = "stopped"  # a rank was stopped by a signal or a debugger
    BUSY = "busy"  # ranks wait for one that works: slow, or lost in a loop
    MOVING = "moving"  # it gets on
    COMPUTING = "computing"  # nobody waits for another rank
    UNSEEN = "unseen"  # no stacks could be taken


@dataclass(frozen=True, slots=True)
class JobState:
    """The state, and the ranks that it is about."""

    state: State
    waiting: tuple[int, ...] = ()
    working: tuple[int, ...] = ()
    stopped: tuple[int, ...] = ()


def state_of(motion: JobMotion) -> JobState:
    """From the looks alone; nobody is accused here."""
    ranks = motion.ranks
    stopped = tuple(rank for rank, one in ranks.items() if one.stopped)
    waiting = tuple(rank for rank, one in ranks.items() if one.is_waiting)
    working = tuple(rank for rank, one in ranks.items() if one.is_working or not one.stands)
    if stopped:
        return JobState(State.STOPPED, waiting, working, stopped)
    if ranks and all(one.doing is Doing.UNKNOWN for one in ranks.values()):
        return JobState(State.UNSEEN)
    if not waiting:
        data = any(one.doing is Doing.DATA and one.stands and not one.is_working for one in ranks.values())
        return JobState(State.HUNG if data and not working else State.COMPUTING, (), working)
    if working or motion.is_moving:
        # Between two looks a healthy rank is seen now in a collective, now elsewhere: somebody gets on with the script.
        return JobState(State.MOVING if motion.is_moving else State.BUSY, waiting, working)
    return JobState(State.HUNG, waiting)


def describe(motion: JobMotion, found: JobState) -> str:
    """One sentence for a job that does not hang, or of which nothing can be told."""
    if found.state is State.UNSEEN:
        return f"No stacks of the ranks could be taken: {_why_unseen(motion)}. From /proc alone: {_by_kernel(motion)}."
    if not found.waiting:
        quiet = [rank for rank in motion.ranks if rank not in found.working]
        if not found.working:
            places = sorted({f" at {frame.place}" if (frame := _own(one)) else "" for one in motion.ranks.values()})
            where = places[0] if len(places) == 1 else ""
            return f"No rank waits for another: {name_ranks(quiet)} {_verb(quiet, 'does', 'do')} nothing{where}."
        rest = f"; {name_ranks(quiet)} {_verb(quiet, 'does', 'do')} nothing" if quiet else ""
        return f"It is not hung: {name_ranks(found.working)} {_verb(found.working, 'works', 'work')}{rest}."
    work = "; ".join(_work(rank, motion.ranks[rank]) for rank in found.working[:4]) or _signs(motion)
    waits = ""
    if found.waiting:
        calls = sorted({call for rank in found.waiting if (call := motion.ranks[rank].position.call)})
        verb = _verb(found.waiting, "waits", "wait")
        waits = f", while {name_ranks(found.waiting)} {verb}" + (f" in {', '.join(calls)}" if calls else "")
    start = "It is not hung" if found.state is State.MOVING else "It is not hung as far as can be seen"
    return f"{start}: {work}{waits}."


def _why_unseen(motion: JobMotion) -> str:
    errors = {one.stacks.error for one in motion.ranks.values() if one.stacks.error}
    return "; ".join(sorted(what_to_grant() if error == GRANT else error for error in errors))


def _by_kernel(motion: JobMotion) -> str:
    """What is known without stacks: who works, who does nothing, and for how long no rank has heard from another."""
    working = [rank for rank, one in motion.ranks.items() if one.is_working]
    idle = [rank for rank in motion.ranks if rank not in working]
    parts = [_work(rank, motion.ranks[rank]) for rank in working[:8]]
    parts += [f"{name_ranks(idle)} {_verb(idle, 'does', 'do')} nothing"] if idle else []
    if motion.quiet is not None:
        parts.append(f"no rank has heard from another for {motion.quiet:.0f} s")
    return "; ".join(parts)


def _signs(motion: JobMotion) -> str:
    """What shows that it gets on, where the stacks do not."""
    if motion.steps:
        return f"its output is {motion.steps} step{'s' if motion.steps > 1 else ''} further"
    return f"its ranks exchange {motion.traffic / 1024:.0f} KiB/s"


def _verb(ranks: Collection[int], one: str, many: str) -> str:
    return one if len(ranks) == 1 else many


def _work(rank: int, one: RankMotion) -> str:
    frame = _own(one)
    where = f" in {frame.function}() at {frame.place}" if frame is not None and "<" not in frame.function else ""
    where = where or (f" at {frame.place}" if frame is not None else "")
    if not one.is_working:  # it was seen at different places
        return f"rank {rank} gets on{where}"
    rate = f" ({one.io / (1 << 20):.0f} MB/s of files)" if one.io >= _WRITES else f" ({one.cpu:.1f} cores)"
    return f"rank {rank} works{where}{rate}"


def _own(one: RankMotion) -> Frame | None:
    return own_frame(one.stacks.main.frames) if one.stacks.main is not None else None
