"""The job that is looked at, on this machine or on several, and how to look at it once more."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from phalanx.attaching.discovery import FoundJob
from phalanx.attaching.evidence import Piece, Scene, gather
from phalanx.attaching.hosts import ask_all, merge
from phalanx.attaching.jobs import AttachError, find_job, find_jobs
from phalanx.attaching.looks import JobMotion, look_at_job
from phalanx.attaching.reach import Reach

Say = Callable[[str], None]
Choose = Callable[[Sequence[FoundJob]], FoundJob]


class JobEndedError(AttachError):
    """None of the job's ranks runs any more."""


@dataclass(frozen=True, slots=True)
class Target:
    """A job, and a function that looks at it; it raises JobEndedError when there is nothing left to look at."""

    job: FoundJob
    look: Callable[[], JobMotion]
    gather: Callable[
        [JobMotion], tuple[Sequence[Piece], Sequence[str]]
    ]  # more evidence, and what to tell the user of it


def target_here(pid: int | None, choose: Choose, *, everybody: bool = False, may_ask: bool = False) -> Target:
    """The job of a process, or the one chosen among all on this machine. Raises AttachError."""
    job = find_job(pid) if pid is not None else choose(find_jobs(everybody=everybody))
    pids = {one.identity.rank: one.process.pid for one in job.ranks}

    def look() -> JobMotion:
        motion = look_at_job(pids, job.size)
        if not motion.ranks:
            raise JobEndedError(f"{job.script}: its ranks have ended")
        return motion

    def more(motion: JobMotion) -> tuple[Sequence[Piece], Sequence[str]]:
        scene = Scene(job, socket.gethostname(), motion.quiet, may_ask)
        return gather(scene), scene.notes

    return Target(job, look, more)


def target_on(reaches: Sequence[Reach], pid: int | None, choose: Choose, say: Say) -> Target:
    """The job chosen among those on other machines, `pid` being a rank of it on any of them. Raises AttachError."""
    views = {view.job.key: view for view in merge(ask_all(reaches, say))}
    jobs = [view.job for view in views.values()]
    if pid is not None:
        jobs = [job for job in jobs if any(one.process.pid == pid for one in job.ranks)]
    job = choose(jobs)
    first, last = [views[job.key]], [views[job.key]]  # finding the job was the first look

    def look() -> JobMotion:
        if first:
            return first.pop().motion
        view = next((view for view in merge(ask_all(reaches, say)) if view.job.key == job.key), None)
        if view is None or not view.motion.ranks:
            raise JobEndedError(f"{job.script}: its ranks have ended")
        last[0] = view
        return view.motion

    def more(motion: JobMotion) -> tuple[Sequence[Piece], Sequence[str]]:
        return last[0].evidence, last[0].notes

    return Target(job, look, more)
