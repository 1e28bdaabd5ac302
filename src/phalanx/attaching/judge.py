"""Judges a job that was looked at from outside, with the judgement that `phalanx run` uses at a stall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from phalanx.attaching.looks import JobMotion
from phalanx.attaching.state import JobState, State
from phalanx.run.observer import Observation
from phalanx.run.watch.neighbours import find_other_neighbour
from phalanx.run.watch.network import NetworkView, observe_network
from phalanx.run.watch.rank_position import Doing, RankPosition
from phalanx.run.watch.roots import find_dissent, find_other_name
from phalanx.run.watch.spinning import spins
from phalanx.run.watch.stall_verdict import judge_stall
from phalanx.run.watch.starts import find_stranger


def judge(
    motion: JobMotion, found: JobState, quiet: float, size: int, ended: Mapping[int, int | None]
) -> list[Observation]:
    """What `phalanx run` would have written down of this stall; nothing where the job may get on by itself."""
    if found.state is State.BUSY and not _turns_in_circles(motion, found):
        return []
    if found.state not in (State.HUNG, State.STOPPED, State.BUSY):
        return []
    positions = {rank: _position(rank, motion) for rank in motion.ranks}
    positions |= {rank: RankPosition(rank, Doing.ENDED, code=code) for rank, code in ended.items()}
    stacks = {rank: one.stacks for rank, one in motion.ranks.items()}
    asked = (find(stacks, size) for find in (find_dissent, find_other_name, find_other_neighbour, find_stranger))
    verdict = judge_stall(positions, {}, size, next((one for one in asked if one is not None), None))
    broken = _broken_paths(motion)
    culprits = () if broken and verdict.reason not in ("stopped", "ended") else verdict.culprits
    data: dict[str, Any] = {
        **verdict.data,
        "missing": list(culprits),
        "kind": found.state.value,
        "quiet_s": round(quiet, 1),
        "snapshot": 1,
    }
    text = verdict.text if found.state is State.STOPPED else f"nothing has moved for {quiet:.0f} s: {verdict.text}"
    return [*broken, Observation("stall", culprits, text, data, (replace(verdict.fact(quiet), ranks=culprits),))]


def _position(rank: int, motion: JobMotion) -> RankPosition:
    one = motion.ranks[rank]
    return RankPosition(rank, Doing.STOPPED, frame=one.position.frame, pid=one.pid) if one.stopped else one.position


def _turns_in_circles(motion: JobMotion, found: JobState) -> bool:
    """Whether all that use the processor do so in a few lines of the user's code, without changing a variable."""
    working = {rank: motion.ranks[rank] for rank in found.working}
    if any(one.io >= 1 for one in working.values()):
        return False  # whoever reads and writes gets somewhere
    parents = frozenset(rank for rank, one in working.items() if one.workers)
    return spins({rank: one.turns for rank, one in working.items()}, parents=parents)


def _broken_paths(motion: JobMotion) -> list[Observation]:
    connections = [connection for one in motion.ranks.values() for connection in one.connections]
    broken = tuple(one for one in connections if one.is_broken)
    return observe_network(NetworkView(broken, {one.local: one.rank for one in connections}))
