"""Decides from signs of life whether a job stands still. Pure: time and signs come from outside, so tests can play them.

A job makes progress when any rank enters or leaves a collective, or says something new. It stands still when that stops
for longer than its own rhythm explains and no rank is at work (computing, reading, writing, its dataloader workers too).
While a rank is at work the others may wait for it: that is an evaluation, a checkpoint or a compilation, up to a ceiling.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

_WINDOW_S = 3.0  # over which work is measured
_BUSY = 0.2  # of a core
_BUSY_BESIDE_SPINNING = 0.7  # where threads that wait take some of it
_BYTES_PER_SECOND = 1 << 20
_LINES_PER_SECOND = 100
_TRAFFIC_PER_SECOND = 16 << 10  # bytes over the network: a slow download; heartbeats and retries are less
_LEAST_KNOWN_S = 1.0
_FAULTS_PER_SECOND = 20  # pages read back in: memory is short, and the rank is slow, not lost
_REMEMBERED = 2048  # gaps between two signs of progress
_FACTOR = 2.0  # by how much a gap must exceed the longest one that was seen
_SETTLED = 8  # signs of progress after which a job has a rhythm; a quick one shows it within few looks:
_SETTLED_CALLS = 24  # about ten steps
_FIRST_CALLS = 4  # entered and left: the first two
_SETTLED_STEPS = 10  # the same where only the output tells of steps, and not of every one:
_FEWEST_GAPS = 1  # as quick steps show
_UNSETTLED = 3.0  # before that, by how much more patience it gets
_WORKING = 2.0  # by how much a rank at work may exceed it: it is far more often slow than lost
_STOPPED_S = 1.0


@dataclass(frozen=True, slots=True)
class Signs:
    """What is known of a rank at one moment. Counters only grow."""

    progress: int = 0  # collectives entered and left, and news told
    calls: int = 0  # the part of it that has a rhythm: collectives and steps
    steps: int = 0  # passed, as far as the output tells
    cpu: float = 0.0  # seconds of the rank and its children
    demand: float = 0.0  # seconds that its main thread ran or was ready to
    io: int = 0  # bytes of files
    traffic: int | None = None  # bytes over the network; None where nobody has looked
    faults: int = 0  # pages that had to be read in
    lines: int = 0  # of output
    stopped: bool = False
    blocked: bool = False  # in the kernel, waiting for a device
    spinning: bool = False  # its CPU time is that of waiting for a device's collective
    may_spin: bool = False  # a part of its CPU time may be that of waiting
    connected: bool | None = None  # None where nobody can tell


class Verdict(StrEnum):
    """What the detector says, once each time that it becomes true."""

    STALL = "stall"  # nobody works
    APART = (
        "apart"  # early: nothing has moved for the least time; a stall if all wait in collectives at different places
    )
    BUSY = "busy"  # others may wait for ranks that take processor time: worth a look whether these get anywhere
    CEILING = "ceiling"  # a rank works, but for longer than is allowed
    STOPPED = "stopped"  # a rank was stopped by a signal
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True)
class Notice:
    """A verdict, who it is about as far as signs tell, and how long nothing has moved."""

    verdict: Verdict
    quiet: float
    patience: float
    working: tuple[int, ...] = ()
    stopped: tuple[int, ...] = ()
    spent: float = 0.0  # processor seconds since then of the one at work that had the fewest
    moving: tuple[int, ...] = ()  # of those at work, who reads, writes, or waits for a device or for memory

    @property
    def is_early(self) -> bool:
        """Whether who computes may well be slow: then only what is certain counts."""
        return self.quiet < _WORKING * self.patience


class StallDetector:
    """Feed it signs about twice a second."""

    def __init__(self, floor: float = 8.0, ceiling: float = 600.0, start: float = 30.0) -> None:
        self._floor, self._ceiling, self._start = floor, max(floor, ceiling), max(start, floor)
        self._gaps: deque[float] = deque(maxlen=_REMEMBERED)
        self._seen: dict[int, int] = {}
        self._past: deque[tuple[float, Mapping[int, Signs]]] = deque()
        self._moved: float | None = None
        self._worked = float("-inf")  # when somebody was last seen at work
        self._settled = 0
        self._calls = 0
        self._at_start = 0  # gaps before the first calls
        self._steps = 0
        self._said: set[Verdict] = set()
        self._stopped_since: dict[int, float] = {}
        self._connected = False
        self._cpu_then: dict[int, float] = {}  # of each rank, when something last moved

    @property
    def patience(self) -> float:
        """How long nothing may move now before it is a stall."""
        if self._settled == 0 and not self._connected:
            return min(self._start, self._ceiling)
        learned = _FACTOR * max(self._gaps, default=0.0)
        told = self._steps >= _SETTLED_STEPS and len(self._gaps) >= _FEWEST_GAPS
        settled = self._settled >= _SETTLED or self._calls >= _SETTLED_CALLS or told
        floor = self._floor if settled else self._floor * _UNSETTLED
        return min(max(floor, learned), self._ceiling)

    def quiet(self, now: float) -> float:
        """For how long nothing has moved."""
        return now - self._moved if self._moved is not None else 0.0

    def work_of(self, rank: int) -> bool:
        """Whether a rank was at work lately."""
        return rank in self._working()

    def update(self, now: float, signs: Mapping[int, Signs]) -> list[Notice]:
        """Take a look in; what is newly true."""
        self._past.append((now, signs))
        while len(self._past) > 2 and now - self._past[1][0] >= _WINDOW_S:
            self._past.popleft()
        self._connected = bool(signs) and all(sign.connected for sign in signs.values())
        self._calls = max((sign.calls for sign in signs.values()), default=0)
        self._steps = max((sign.steps for sign in signs.values()), default=0)
        found: list[Notice] = []
        if self._has_moved(now, signs):
            if self._said & {Verdict.STALL, Verdict.CEILING, Verdict.BUSY, Verdict.APART}:
                found.append(Notice(Verdict.RECOVERED, self.quiet(now), self.patience))
            self._note_gap(now)
        found += self._look_for_stopped(now, signs)
        if signs:
            found += self._judge(now)
        return found

    def forgive(self, verdict: Verdict) -> None:
        """Let a verdict be given again, after a closer look found nothing in it."""
        self._said.discard(verdict)

    def _has_moved(self, now: float, signs: Mapping[int, Signs]) -> bool:
        if self._moved is None:
            self._moved = now
            self._seen = {rank: sign.progress for rank, sign in signs.items()}
            return False
        moved = any(sign.progress > self._seen.get(rank, 0) for rank, sign in signs.items())
        moved = moved or bool(self._seen.keys() - signs.keys())  # a rank that ended is news, too
        self._seen = {rank: max(sign.progress, self._seen.get(rank, 0)) for rank, sign in signs.items()}
        return moved

    def _note_gap(self, now: float) -> None:
        self._cpu_then = {rank: sign.cpu for rank, sign in self._past[-1][1].items()}
        if self._settled:  # the first gap is the job's start
            self._gaps.append(self.quiet(now))
        if self._calls < _FIRST_CALLS:
            self._at_start = len(self._gaps)
        elif self._at_start and self._calls >= _SETTLED_CALLS:
            # a rhythm is known: pauses before its first calls were imports and the compilation of the first step
            self._gaps = deque(list(self._gaps)[self._at_start :], maxlen=_REMEMBERED)
            self._at_start = 0
        self._settled += 1
        self._moved = now
        self._said -= {Verdict.STALL, Verdict.CEILING, Verdict.BUSY, Verdict.APART}

    def _judge(self, now: float) -> list[Notice]:
        quiet, patience = self.quiet(now), self.patience
        working = self._working()
        if working:
            self._worked = now
        if quiet >= self._ceiling:
            return self._say_once(Notice(Verdict.CEILING, quiet, patience, working))
        if quiet < patience:
            return self._early(now, working)
        if working:
            found = Notice(Verdict.BUSY, quiet, patience, working, spent=self._spent(working), moving=self._moving())
            # who moves data gets somewhere
            return [] if found.is_early and found.moving else self._say_once(found)
        # A pause after long work is a pause: imports before a late start, an upload after an evaluation.
        idle = now - max(self._moved or 0.0, self._worked - _WINDOW_S)
        if idle < patience or now - self._past[0][0] < _WINDOW_S:
            return []
        return self._say_once(Notice(Verdict.STALL, quiet, patience))

    def _spent(self, working: tuple[int, ...]) -> float:
        """On a loaded machine a rank computes for minutes and has got little done."""
        latest = self._past[-1][1]
        return min(
            (latest[rank].cpu - self._cpu_then.get(rank, 0.0) for rank in working if rank in latest), default=0.0
        )

    def _early(self, now: float, working: tuple[int, ...]) -> list[Notice]:
        """Before the job's rhythm is known, or while waiting itself takes processor time, as Horovod's does: ranks that wait
        in collectives at different places wait for ever, and a look at their stacks tells that soon."""
        quiet = self.quiet(now)
        gaps = list(self._gaps)[self._at_start :]  # imports, before the first calls, are no part of a rhythm
        if quiet < max(self._floor, _FACTOR * max(gaps, default=0.0)) or self._moving():
            return []
        return self._say_once(Notice(Verdict.APART, quiet, self.patience, working))

    def _look_for_stopped(self, now: float, signs: Mapping[int, Signs]) -> list[Notice]:
        stopped = {rank for rank, sign in signs.items() if sign.stopped}
        self._stopped_since = {rank: self._stopped_since.get(rank, now) for rank in stopped}
        long = tuple(sorted(rank for rank, since in self._stopped_since.items() if now - since >= _STOPPED_S))
        if not long:
            self._said.discard(Verdict.STOPPED)
            return []
        return self._say_once(Notice(Verdict.STOPPED, self.quiet(now), self.patience, stopped=long))

    def _say_once(self, finding: Notice) -> list[Notice]:
        if finding.verdict in self._said or (finding.verdict is Verdict.STALL and Verdict.STOPPED in self._said):
            return []
        if Verdict.APART in self._said and finding.verdict is not Verdict.STOPPED:
            return []  # the same stall, looked at or told before
        self._said.add(finding.verdict)
        return [finding]

    def _working(self) -> tuple[int, ...]:
        """Ranks that computed, read or wrote within the window."""
        return tuple(sorted({*self._computing(), *self._moving()}))

    def _computing(self) -> tuple[int, ...]:
        if len(self._past) < 2:
            return ()
        (before, earlier), (now, latest) = self._past[0], self._past[-1]
        span = max(now - before, 1e-6)
        found = []
        for rank, sign in latest.items():
            old = earlier.get(rank)
            if old is None:
                continue
            cpu = max(sign.cpu - old.cpu, sign.demand - old.demand) / span
            # who floods its output waits most of the time until it is taken
            floods = (sign.lines - old.lines) / span >= _LINES_PER_SECOND
            least = _BUSY_BESIDE_SPINNING if sign.may_spin and old.may_spin else _BUSY
            if (cpu >= least and not sign.spinning) or floods:
                found.append(rank)
        return tuple(found)

    def _moving(self) -> tuple[int, ...]:
        if len(self._past) < 2:
            return ()
        (before, earlier), (now, latest) = self._past[0], self._past[-1]
        span = max(now - before, 1e-6)
        found = []
        for rank, sign in latest.items():
            old = earlier.get(rank)
            if old is not None:
                is_reading = (sign.io - old.io) / span >= _BYTES_PER_SECOND
                is_swapping = (sign.faults - old.faults) / span >= _FAULTS_PER_SECOND
                is_moving = is_reading or is_swapping or self._is_talking(rank) or (sign.blocked and old.blocked)
                found += [rank] if is_moving else []
        return tuple(found)

    def _is_talking(self, rank: int) -> bool:
        """Over the part of the window for which it is known: the network is looked at late."""
        known = [
            (when, sign.traffic)
            for when, signs in self._past
            if (sign := signs.get(rank)) is not None and sign.traffic is not None
        ]
        if len(known) < 2 or known[-1][0] - known[0][0] < _LEAST_KNOWN_S:
            return False
        return (known[-1][1] - known[0][1]) / (known[-1][0] - known[0][0]) >= _TRAFFIC_PER_SECOND
