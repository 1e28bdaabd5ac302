"""Looks at a found job until it is clear whether it hangs, and leaves a bundle of what was seen, for the diagnosis.

A job that hangs is looked at as `phalanx run` looks at one of its own: the same snapshot, the same judgement.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx.attach.discovery import FoundJob
from phalanx.attach.looks import JobMotion, look_at_job
from phalanx.attach.state import JobState, State, state_of
from phalanx.model.ranks import name_ranks
from phalanx.run.bundle import BundleWriter
from phalanx.run.observer import Observation
from phalanx.run.watch.snapshot import take_snapshot
from phalanx.run.watch.stall import Notice, Verdict
from phalanx.run.watch.suspicion import Inquiry

_SURE_S = 8.0  # of silence between the ranks before waiting is a stall and not a slow step
_ROUNDS = 4
_VERDICTS = {State.HUNG: Verdict.STALL, State.STOPPED: Verdict.STOPPED, State.BUSY: Verdict.BUSY}


@dataclass(frozen=True, slots=True)
class Seen:
    """What an investigation found; `stalls` is whether the bundle holds a stall to diagnose."""

    job: FoundJob
    motion: JobMotion
    found: JobState
    stalls: bool
    bundle: Path


def investigate(job: FoundJob, bundle: Path, say: Callable[[str], None], rounds: int = _ROUNDS) -> Seen:
    """Look, decide, and write the bundle. Takes three seconds if the job works or has been quiet for long, else up to fifteen."""
    pids = {one.identity.rank: one.process.pid for one in job.ranks}
    motion = look_at_job(pids)
    found, quiet = state_of(motion), motion.seconds
    for _ in range(rounds - 1):
        if found.state is not State.HUNG or max(quiet, motion.quiet or 0.0) >= _SURE_S:
            break
        say(f"{name_ranks(found.waiting) or 'the ranks'} wait; looking longer to tell a hang from a slow step")
        motion = look_at_job(pids)
        found, quiet = state_of(motion), quiet + motion.seconds
    quiet = max(quiet, motion.quiet or 0.0)
    writer = BundleWriter(bundle, say)
    writer.begin(_manifest(job, found, quiet))
    attempt = writer.begin_attempt(0, pids)
    for one in job.ranks:
        process = {"pid": one.process.pid, "rank_told_by": one.told_by, "role": one.identity.role}
        writer.write_process(attempt, one.identity.rank, process, one.process.variables or {})
    observations: list[Observation] = []
    if found.state in _VERDICTS:
        observations = _inquire(job, motion, found, quiet, attempt, pids)
    else:
        take_snapshot(1, attempt, pids, {})
    for observation in observations:
        writer.write_observation(attempt, observation)
    return Seen(job, motion, found, any(one.kind == "stall" for one in observations), bundle)


def _inquire(
    job: FoundJob, motion: JobMotion, found: JobState, quiet: float, attempt: Path, pids: dict[int, int]
) -> list[Observation]:
    moving = tuple(rank for rank in found.working if not motion.ranks[rank].stands or motion.ranks[rank].io)
    notice = Notice(
        _VERDICTS[found.state], quiet, min(quiet, _SURE_S), working=found.working, stopped=found.stopped, moving=moving
    )
    looks = {rank: one.look for rank, one in motion.ranks.items()}
    inquiry = Inquiry(notice, job.size, lambda: take_snapshot(1, attempt, pids, {}), pids, looks, {})
    inquiry.start()
    inquiry.join(60.0)
    return list(inquiry.observations or ())


def _manifest(job: FoundJob, found: JobState, quiet: float) -> dict[str, Any]:
    launcher = job.launcher
    return {
        "name": job.script,
        "size": job.size,
        "attached": {
            "at": time.time(),
            "state": found.state.value,
            "quiet_s": round(quiet, 1),
            "ranks_here": [one.identity.rank for one in job.ranks],
            "launcher": launcher.pid if launcher is not None else None,
        },
    }
