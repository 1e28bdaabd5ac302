"""What the journals of all ranks tell when a job is over: who left the common course of calls, and whether anybody was called at all."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from phalanx.blame.quorum import is_minority
from phalanx.model.facts import make_fact
from phalanx.model.ranks import name_ranks
from phalanx.run.observer import Observation, Setup
from phalanx.run.script import script_of_command, trains_one_model
from phalanx.run.watch.deviation import find_deviation
from phalanx.run.watch.heartbeat import Heartbeat
from phalanx.run.watch.inside.phalanx_inside import IMPORTED, LEAVING
from phalanx.run.watch.journals import Journal, journals_in

TAKEN_DOWN = 1 << 16  # in place of a code: the launcher ended it
_PEER_LOST = re.compile(
    r"(?i)has been shut down|aborted by|unavailable|closed by peer|reset by peer|socket closed|broken pipe|crashed"
)
_COUNTED = frozenset({"tensorflow", "horovod"})  # groups of which every call is counted

Failure = Mapping[str, Any]  # `failed_at` and `error`, as the rank's last words tell them


class Partings:
    """Collects how ranks ended, and tells once, when all have."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._codes: dict[int, int] = {}
        self._failures: dict[int, Failure] = {}
        self._steps: dict[int, int] = {}
        self._left_at: dict[int, float] = {}
        self._beats: dict[int, Heartbeat] = {}
        self._is_open = True

    def close(self) -> None:
        """Something else has been told of the whole job."""
        self._is_open = False

    def ended(self, rank: int, code: int, failure: Failure, beat: Heartbeat | None, step: int | None = None) -> None:
        """A rank is gone; `beat` is the last that was seen of it, `step` the last that it told of."""
        # after the first failure the launcher ends the rest by these signals
        is_taken_down = code in (-signal.SIGTERM, -signal.SIGKILL) and any(self._codes.values())
        self._codes[rank] = TAKEN_DOWN if is_taken_down else code
        self._failures[rank] = failure
        if step is not None:
            self._steps[rank] = step
        if beat is not None:
            self._beats[rank] = beat
        # a process may take seconds to end once its script is through
        self._left_at[rank] = beat.time if beat is not None and beat.phase == LEAVING else time.monotonic()

    def tell(self, living: bool) -> list[Observation]:
        """Nothing while a rank lives: what it will still call is not known."""
        if living or not self._is_open or len(self._codes) < self._setup.size:
            return []
        codes, self._codes = self._codes, {}
        if any(codes.values()):
            journals = journals_in(self._setup.attempt, codes)
            failed_at = {rank: str(one["failed_at"]) for rank, one in self._failures.items() if one.get("failed_at")}
            found = deviation_at_the_end(journals, codes, failed_at, self._setup.size)
            if found is None and not self._setup.roles:
                in_order = dict(sorted(codes.items(), key=lambda one: self._left_at[one[0]]))
                found = left_before_the_rest(journals, in_order, self._failures, self._steps, self._setup.size)
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


def left_before_the_rest(
    journals: Mapping[int, Journal],
    codes: Mapping[int, int],
    failures: Mapping[int, Failure],
    steps: Mapping[int, int],
    size: int,
) -> Observation | None:
    """Who ended with status 0 before all others, which then failed in a call to it and say so. `codes` are in the order in which they
    left their scripts. For ranks whose journals show no difference: `os._exit(0)` leaves none."""
    early = frozenset(takewhile(lambda rank: codes[rank] == 0, codes))
    rest = [rank for rank in codes if rank not in early and codes[rank] != TAKEN_DOWN]
    waited = {rank: call for rank in rest if rank in journals and (call := journals[rank].waits_in) is not None}
    says_so = all(_PEER_LOST.search(str(failures.get(rank, {}).get("error", ""))) for rank in rest)
    if not rest or len(waited) < len(rest) or not says_so or not is_minority(early, range(size), directed=True):
        return None
    call = waited[rest[0]]
    at = f"{call.op}{f' at {call.frame.place}' if call.frame is not None else ''}"
    in_round = ", ".join(f"{name} {value}" for name, value in call.passes) or "a later step"
    status = _status(journals.get(min(early)), steps.get(min(early)))
    fields = {"skipped": at, "round": in_round, "others": name_ranks(rest), "status": status}
    fact = make_fact("calls.deviated", fields, ranks=tuple(sorted(early)), source="watch")
    text = f"{name_ranks(early)} {status}; {name_ranks(rest)} went on to {at} in {in_round}"
    return Observation("calls", tuple(sorted(early)), text, {"reason": "left"}, (fact,))


def _status(journal: Journal | None, step: int | None = None) -> str:
    """How far a rank that ended well had come, by its calls, or by what it told."""
    far = journal.last_passes if journal is not None else ""
    if not far and step is not None:
        return f"ended with status 0 (the last step it reported is {step})"
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
