"""How a job is ended, step by step: time for last words, a request, then force. Pure: it only says what to send when."""

from __future__ import annotations

import signal
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a job is being ended, or ended by itself."""

    kind: str  # `done`, `failed`, `interrupted`, `timeout`, `stall`
    text: str
    status: int  # what the command exits with
    ranks: tuple[int, ...] = ()  # who failed first, where a rank did

    @property
    def may_restart(self) -> bool:
        """A failure is worth another attempt, a user's wish is not."""
        return self.kind in ("failed", "stall")


class Ending:
    """Nothing until `begin`; from then on `due` tells which signal living ranks are to get now.

    After a failure the peers have `grace` seconds to find out and to say so; then they are asked to end, and after as
    many seconds more made to. Where a person or a clock ends the job, they are asked at once.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self.reason: Reason | None = None
        self.forces = False  # the next signal, or the last one, is SIGKILL
        self._plan: list[tuple[float, int]] = []
        self.sent: int | None = None

    def begin(self, reason: Reason, now: float, request: int | None = None) -> None:
        """Start to end. The first reason stands; a person's wish only hastens what is under way."""
        if self.reason is None:
            self.reason = reason
        elif request is None:
            return
        if request is not None:
            self._plan = [(now, request), (now + self._grace, int(signal.SIGKILL))]
        else:
            self._plan = [(now + self._grace, int(signal.SIGTERM)), (now + 2 * self._grace, int(signal.SIGKILL))]

    def force(self, now: float) -> None:
        """No more patience."""
        self._plan = [(now, int(signal.SIGKILL))]

    def due(self, now: float) -> int | None:
        """The signal that is to be sent now, once."""
        if not self._plan or self._plan[0][0] > now:
            return None
        while len(self._plan) > 1 and self._plan[1][0] <= now:
            self._plan.pop(0)
        self.sent = self._plan.pop(0)[1]
        self.forces = self.sent == signal.SIGKILL
        return self.sent

    def wait(self, now: float) -> float | None:
        """Seconds until the next signal is due."""
        return max(0.0, self._plan[0][0] - now) if self._plan else None


def describe_code(code: int) -> str:
    """How a rank ended, as people say it."""
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"


def describe_death(code: int, seconds: float) -> str:
    """`died of SIGKILL, 12 s after its start`, `ended with exit status 1 …`."""
    try:
        how = f"ended with exit status {code}" if code >= 0 else f"died of {signal.Signals(-code).name}"
    except ValueError:
        how = f"died of signal {-code}"
    return f"{how}, {seconds:.0f} s after its start"


def status_of(code: int) -> int:
    """What a shell would show of a rank's code."""
    return code if code >= 0 else 128 - code
