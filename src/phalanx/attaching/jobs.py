"""All training jobs on this machine, however they were started, or the one that a given process belongs to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from phalanx.attaching.connected import jobs_by_connections, numbered_by_stacks
from phalanx.attaching.discovery import FoundJob, Process, all_processes, ancestors, jobs_by_variables
from phalanx.attaching.ray_train import with_training_thread
from phalanx.attaching.rights import what_to_grant
from phalanx.run.watch.stacks import take_stacks


class AttachError(ValueError):
    """There is nothing to attach to, or it may not be looked at; the message says what to do."""


def find_jobs(*, everybody: bool = False, within: str = "") -> list[FoundJob]:
    """The jobs of this user, or of everybody, those with most ranks first; `within` is a `NAME=value` that ranks must have."""
    processes = all_processes(lambda user: everybody or user == os.geteuid())
    jobs = _jobs({pid: one for pid, one in processes.items() if not _is_ours(one)})
    name, _, value = within.partition("=")
    return [job for job in jobs if not name or (job.ranks[0].process.variables or {}).get(name) == value]


def _is_ours(process: Process) -> bool:
    """A process that attaches, perhaps as a task of the very engine that it looks at."""
    names = [Path(word).name for word in process.command]
    by_module = any(name.startswith("phalanx.attaching.") for name in names)
    return process.is_python and (by_module or ("phalanx", "attach") in pairwise(names))


def find_job(pid: int) -> FoundJob:
    """The job of a process: its launcher, a rank, or a helper of one. Raises AttachError."""
    processes = all_processes(lambda user: True)
    if pid not in processes:
        raise AttachError(f"there is no process {pid}")
    user = processes[pid].user
    own = {number: one for number, one in processes.items() if one.user == user}
    found = [job for job in _jobs(own) if _belongs(pid, job, own)]
    if not found:
        if processes[pid].variables is None:
            if user == os.geteuid():
                raise AttachError(f"process {pid} may not be read: {what_to_grant()}")
            raise AttachError(f"process {pid} belongs to another user: run this as that user, or as root")
        what = " ".join(processes[pid].command)[:80] or processes[pid].program
        raise AttachError(
            f"process {pid} ({what}) is no rank, launcher or helper of a training job that can be "
            "found; a job that is still starting is found once its ranks are up"
        )
    # A launcher may have several jobs below it; then the one that was started last is meant.
    return max(found, key=lambda job: max(one.process.start for one in job.ranks))


def _belongs(pid: int, job: FoundJob, processes: Mapping[int, Process]) -> bool:
    ranks = {one.process.pid for one in job.ranks}
    above = {one.pid for rank in ranks for one in ancestors(processes[rank], processes)} - {1}
    below = {one.pid for one in ancestors(processes[pid], processes)}
    return pid in ranks or pid in above or bool(ranks & below)


def _jobs(processes: Mapping[int, Process]) -> list[FoundJob]:
    told = jobs_by_variables(processes)
    known = [one.process.pid for job in told for one in job.ranks]
    by_connections = []
    for job in jobs_by_connections(processes, known):
        stacks = take_stacks([one.process.pid for one in job.ranks], values=True)
        trained = {pid: with_training_thread(one) for pid, one in stacks.items()}
        by_connections.append(numbered_by_stacks(job, trained, processes))
    return sorted([*told, *by_connections], key=lambda job: -len(job.ranks))
