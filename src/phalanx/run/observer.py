"""The seam between the supervisor, which starts and ends ranks, and the watch, which looks at them.

The supervisor calls all of it from one thread. Nothing here may block for long or print: `heard` is called for
every line, `tick` about twice a second. One observer serves one attempt of the job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from phalanx.model.fact import Fact

T = TypeVar("T")
GIVEN_UP = "given-up"  # of a stall that ended, before it was told, by time-outs of the ranks' own


@dataclass(frozen=True, slots=True)
class Setup:
    """What an observer is told before the ranks start."""

    attempt: Path  # the attempt's folder in the bundle; `model.bundle` names the files in it
    size: int
    framework: str | None  # `torch`, `tensorflow`, …; None for a program that nobody recognised
    command: tuple[str, ...]  # what every rank runs
    inside: bool = True  # whether ranks may be watched from inside
    stall_after: float = 8.0  # seconds without progress before a stall is thought of, however quick the steps are
    notices_stalls: bool = True  # else nobody is looked at more closely when nothing moves
    stall_at_most: float = 600.0  # seconds after which it is a stall, however slow the steps were or busy a rank looks
    ranks: tuple[int, ...] = ()  # those of this node, where there are others; else all of them
    roles: Mapping[int, str] = field(default_factory=dict)  # `ps 0` by rank, where the job has roles

    @property
    def watched(self) -> tuple[int, ...]:
        """The ranks that are watched here."""
        return self.ranks or tuple(range(self.size))


@dataclass(frozen=True, slots=True)
class Observation:
    """Something worth writing down: `stall`, `recovered`, `straggler`, `network`, `death`, …"""

    kind: str
    ranks: tuple[int, ...] = ()  # whom it is about; for a stall those that are to blame, if that is known
    text: str = ""  # one sentence for a person
    data: Mapping[str, Any] = field(default_factory=dict)  # JSON values only
    facts: tuple[Fact, ...] = ()  # what was established, for rules


@dataclass(frozen=True, slots=True)
class RankStatus:
    """What the status line says of a rank; None where it is not known."""

    step: int | None = None
    steps_per_second: float | None = None
    memory: int | None = None  # bytes, children included
    behind: int | None = None  # by how much it has been behind the foremost rank for some seconds, in
    unit: str = "step"  # or collective
    idle: float | None = None  # seconds since it last got on
    phase: str = ""  # `starting`, `connecting`, `training`, `leaving`; empty where nobody tells


class Observer(Protocol):
    """What the supervisor asks of a watch."""

    def environment(self, rank: int) -> Mapping[str, str]:
        """Variables to add for the watch inside the rank; PYTHONPATH is put before the user's own."""

    def started(self, pids: Mapping[int, int]) -> None:
        """All ranks run now."""

    def heard(self, rank: int, line: bytes) -> None:
        """A line of the rank's output, without its end. Must be cheap."""

    def ended(self, rank: int, code: int) -> Mapping[str, Any]:
        """The rank is gone, by Python's form of the code. Returns what is known of why: `exit.json`, under `why`."""

    def tick(self) -> Sequence[Observation]:
        """Look. Called about twice a second; what it returns goes into watch.jsonl."""

    def snapshot(self, why: str) -> int:
        """Stacks and flight recorders of all living ranks into the bundle; the snapshot's number, from 1."""

    def status(self) -> Mapping[int, RankStatus]:
        """How the ranks fare."""

    def close(self) -> None:
        """The attempt is over: release everything."""


class NoWatch:
    """An observer that does nothing."""

    def environment(self, rank: int) -> Mapping[str, str]:
        """No variables."""
        return {}

    def started(self, pids: Mapping[int, int]) -> None:
        """Of no interest."""

    def heard(self, rank: int, line: bytes) -> None:
        """Of no interest."""

    def ended(self, rank: int, code: int) -> Mapping[str, Any]:
        """Nothing is known."""
        return {}

    def tick(self) -> Sequence[Observation]:
        """Nothing is seen."""
        return ()

    def snapshot(self, why: str) -> int:
        """Nothing is taken."""
        return 0

    def status(self) -> Mapping[int, RankStatus]:
        """Nothing is known."""
        return {}

    def close(self) -> None:
        """Nothing to release."""


class Guarded:
    """An observer behind which a fault of the watch ends the watch and not the job."""

    def __init__(self, inner: Observer, say: Callable[[str], None]) -> None:
        self._inner = inner
        self._say = say

    def environment(self, rank: int) -> Mapping[str, str]:
        """As the watch says."""
        return self._ask(lambda inner: inner.environment(rank), {})

    def started(self, pids: Mapping[int, int]) -> None:
        """Told to the watch."""
        self._ask(lambda inner: inner.started(pids), None)

    def heard(self, rank: int, line: bytes) -> None:
        """Told to the watch; without a detour, for it is called for every line."""
        try:
            self._inner.heard(rank, line)
        except Exception as error:
            self._give_up(error)

    def ended(self, rank: int, code: int) -> Mapping[str, Any]:
        """As the watch says."""
        return self._ask(lambda inner: inner.ended(rank, code), {})

    def tick(self) -> Sequence[Observation]:
        """As the watch says."""
        return self._ask(lambda inner: inner.tick(), ())

    def snapshot(self, why: str) -> int:
        """As the watch says."""
        return self._ask(lambda inner: inner.snapshot(why), 0)

    def status(self) -> Mapping[int, RankStatus]:
        """As the watch says."""
        return self._ask(lambda inner: inner.status(), {})

    def close(self) -> None:
        """Told to the watch."""
        self._ask(lambda inner: inner.close(), None)

    def _ask(self, question: Callable[[Observer], T], otherwise: T) -> T:
        try:
            return question(self._inner)
        except Exception as error:
            self._give_up(error)
            return otherwise

    def _give_up(self, error: Exception) -> None:
        self._inner = NoWatch()
        self._say(f"the watch broke ({type(error).__name__}: {error}); the job goes on unwatched")


def make_observer(setup: Setup, say: Callable[[str], None]) -> Observer:
    """The watch of `phalanx.run.watch`, imported only when a job runs."""
    from phalanx.run.watch import Watch

    return Guarded(Watch(setup), say)
