"""Looks at a found job until it is clear whether it hangs, judges it, and leaves a bundle for the diagnosis."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from phalanx import private
from phalanx.attaching.discovery import FoundJob
from phalanx.attaching.evidence import Piece
from phalanx.attaching.judge import judge
from phalanx.attaching.looks import JobMotion, with_moving_data
from phalanx.attaching.state import JobState, State, state_of
from phalanx.attaching.target import Target
from phalanx.model.bundle import rank_folder, stacks_file
from phalanx.model.fact import Fact
from phalanx.model.ranks import name_ranks
from phalanx.run.bundle import BundleWriter
from phalanx.run.observer import Observation
from phalanx.run.watch.stacks import as_text

_SURE_S = 8.0  # of silence between the ranks before waiting is a stall and not a slow step
_ROUNDS = 4
_ALLOW = "Give the process group a time-out that is longer than the pause: `init_process_group(timeout=…)`."
_CONFIRM = "`phalanx attach --bundle DIR` keeps the stacks of all ranks"


@dataclass(frozen=True, slots=True)
class Seen:
    """What an investigation found; `observations` holds a stall where the job hangs."""

    job: FoundJob
    motion: JobMotion
    found: JobState
    quiet: float
    observations: tuple[Observation, ...]
    evidence: tuple[Piece, ...] = ()

    @property
    def hangs(self) -> bool:
        """Whether there is a stall to diagnose."""
        return any(one.kind == "stall" for one in self.observations)


def investigate(target: Target, say: Callable[[str], None], rounds: int = _ROUNDS) -> Seen:
    """Look and decide. Takes three seconds if the job works or has been quiet for long, else up to fifteen."""
    job, motion = target.job, target.look()
    found, watched = state_of(motion), motion.seconds
    for number in range(rounds - 1):
        if found.state is not State.HUNG or max(watched, motion.quiet or 0.0) >= _SURE_S:
            break
        if number == 0:
            who = (
                f"{name_ranks(found.waiting)} wait{'s' if len(found.waiting) == 1 else ''}"
                if found.waiting
                else "the ranks wait"
            )
            say(f"{who}; looking longer to tell a hang from a slow step")
        motion = with_moving_data(target.look(), motion)
        found, watched = state_of(motion), watched + motion.seconds
    quiet = max(watched, motion.quiet or 0.0)
    gone = dict.fromkeys(rank for rank in job.missing if rank not in motion.ranks)
    seen = Seen(job, motion, found, quiet, tuple(judge(motion, found, quiet, job.size, gone)))
    if not seen.hangs:
        return seen
    evidence, notes = target.gather(motion)
    for note in notes:
        say(note)
    return replace(seen, evidence=tuple(evidence))


def keep(seen: Seen, bundle: Path, say: Callable[[str], None], *, for_good: bool = True) -> None:
    """Write what was seen as a bundle that `phalanx diagnose` reads; one that is not kept `for_good` is not spoken of."""
    job = seen.job
    writer = BundleWriter(bundle, say)
    writer.begin(_manifest(seen))
    attempt = writer.begin_attempt(0, seen.motion.ranks)
    for one in job.ranks:
        rank = one.identity.rank
        motion = seen.motion.ranks.get(rank)
        if motion is None:
            continue
        process = {"pid": one.process.pid, "host": one.host, "role": one.identity.role, "rank_known_by": one.told_by}
        writer.write_process(attempt, rank, process, one.process.variables or {})
        text = as_text([motion.stacks, *motion.workers])
        private.write_text(rank_folder(attempt, rank) / stacks_file(1), text)
    for observation in seen.observations:
        facts = tuple(_worded(fact, for_good) for fact in observation.facts)
        writer.write_observation(attempt, replace(observation, facts=facts))
    for piece in seen.evidence:
        place = place_of(piece, attempt)
        if place.parent.is_dir():  # a rank that has ended meanwhile has none
            private.write_bytes(place, piece.data)


def _worded(fact: Fact, for_good: bool) -> Fact:
    """Nobody watches this job, and there may be no bundle to look into."""
    if not fact.id.startswith("stall."):
        return fact
    more = {"allow": _ALLOW} if for_good else {"allow": _ALLOW, "confirm": _CONFIRM}
    return replace(fact, fields={**fact.fields, **more})


def place_of(piece: Piece, attempt: Path) -> Path:
    """Where a piece of evidence lies in the bundle."""
    return (rank_folder(attempt, piece.rank) if piece.rank is not None else attempt) / Path(piece.file).name


def _manifest(seen: Seen) -> Mapping[str, Any]:
    job = seen.job
    return {
        "name": job.script,
        "size": job.size,
        "attached": {
            "at": time.time(),
            "state": seen.found.state.value,
            "quiet_s": round(seen.quiet, 1),
            "ranks": sorted(seen.motion.ranks),
            "launcher": job.launcher.pid if job.launcher is not None else None,
        },
    }
