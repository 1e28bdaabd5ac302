"""What the journals of all ranks tell when a job is over: who left the common course of calls, and whether anybody was called at all."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path

from phalanx.model.facts import make_fact
from phalanx.model.ranks import name_ranks
from phalanx.run.observer import Observation, Setup
from phalanx.run.script import script_of_command, trains_one_model
from phalanx.run.watch.deviation import find_deviation
from phalanx.run.watch.heartbeat import Heartbeat
from phalanx.run.watch.inside.phalanx_inside import IMPORTED
from phalanx.run.watch.journals import Journal, journals_in

TAKEN_DOWN = 1 << 16  # in place of a code: the launcher ended it
_COUNTED = frozenset({"tensorflow", "horovod"})  # groups of which every call is counted


class Partings:
    """Collects how ranks ended, and tells once, when all have."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._codes: dict[int, int] = {}
        self._failed_at: dict[int, str] = {}
        self._beats: dict[int, Heartbeat] = {}
        self._is_open = True

    def close(self) -> None:
        """Something else has been told of the whole job."""
        self._is_open = False

    def ended(self, rank: int, code: int, failed_at: str, beat: Heartbeat | None) -> None:
        """A rank is gone; `beat` is the last that was seen of it."""
        # after the first failure the launcher ends the rest by these signals
        is_taken_down = code in (-signal.SIGTERM, -signal.SIGKILL) and any(self._codes.values())
        self._codes[rank] = TAKEN_DOWN if is_taken_down else code
        if failed_at:
            self._failed_at[rank] = failed_at
        if beat is not None:
            self._beats[rank] = beat

    def tell(self, living: bool) -> list[Observation]:
        """Nothing while a rank lives: what it will still call is not known."""
        if living or not self._is_open or len(self._codes) < self._setup.size:
            return []
        codes, self._codes = self._codes, {}
        if any(codes.values()):
            journals = journals_in(self._setup.attempt, codes)
            found = deviation_at_the_end(journals, codes, self._failed_at, self._setup.size)
        else:
            found = never_communicated(self._setup, self._beats)
        return [found] if found is not None else []


def deviation_at_the_end(
    journals: Mapping[int, Journal], codes: Mapping[int, int], failed_at: Mapping[int, str], size: int
) -> Observation | None:
    """Who left out a call or made one too many, where ranks failed to meet for it: not where the accused failed by itself, elsewhere
    than in a call that waits for its peers."""
    ended = frozenset(rank for rank, code in codes.items() if code == 0)
    found = find_deviation(journals, ended, size)
    if found is None or any(_failed_by_itself(codes, failed_at, journals, rank) for rank in found.culprits):
        return None
    left = sorted(rank for rank in found.culprits & ended)
    fields = {**found.fields, "status": _status(journals[left[0]]) if left else None}
    fact = make_fact("calls.deviated", fields, ranks=tuple(sorted(found.culprits)), source="watch")
    return Observation("calls", tuple(sorted(found.culprits)), found.text, {"reason": found.reason}, (fact,))


def _status(journal: Journal) -> str:
    """How far a rank that ended well had come."""
    far = journal.last_passes
    return f"ended with status 0{f' after {far}' if far else ''}"


def _failed_by_itself(
    codes: Mapping[int, int], failed_at: Mapping[int, str], journals: Mapping[int, Journal], rank: int
) -> bool:
    """By a signal, or by an exception that was not raised in its last call to its peers."""
    code, journal = codes.get(rank, 0), journals[rank]
    if code in (0, TAKEN_DOWN):
        return False
    last = journal.calls[-1] if journal.calls else None
    is_in_call = journal.waits_in is not None or (
        last is not None and last.frame is not None and last.frame.place == failed_at.get(rank)
    )
    return code < 0 or not is_in_call


def never_communicated(setup: Setup, beats: Mapping[int, Heartbeat]) -> Observation | None:
    """Several ranks that all ended well without a single call to one another: as many trainings as ranks.

    PyTorch's recorders do not count sends and receives, and parameter servers are not called by collectives: who has met there may have talked.
    Nothing is wrong with ranks that do not train, or that each try a setting of their own.
    """
    if (
        setup.size < 2
        or len(beats) < setup.size
        or any(role.startswith(("ps", "evaluator")) for role in setup.roles.values())
    ):
        return None
    if any(beat.phase < IMPORTED or beat.enqueued or not beat.groups.keys() <= _COUNTED for beat in beats.values()):
        return None
    script = script_of_command(setup.command, Path.cwd())
    if script is None or not trains_one_model(script):
        return None
    met = all(beat.groups for beat in beats.values())
    fact = make_fact(
        "calls.none", {"framework": setup.framework, "met": met or None, "count": setup.size}, source="watch"
    )
    text = f"{name_ranks(range(setup.size))} never called one another: each trained by itself"
    return Observation("calls", (), text, {}, (fact,))
