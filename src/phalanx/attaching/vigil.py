"""Stays with a job: says when it begins to hang, and when it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from phalanx.attaching.investigation import Seen
from phalanx.attaching.target import JobEndedError


@dataclass(slots=True)
class Vigil:
    """Looks again and again; `hung` is told once when a hang begins, `recovered` once when it is over."""

    look: Callable[[], Seen]  # raises JobEndedError when the job is gone
    hung: Callable[[Seen], None]
    recovered: Callable[[Seen], None]
    every: float = 30.0
    pause: Callable[[float], None] = time.sleep

    def keep(self, rounds: int | None = None) -> bool:
        """Until the job is gone, or for so many looks; whether the last look saw a hang."""
        hangs = False
        while rounds is None or rounds > 0:
            try:
                seen = self.look()
            except JobEndedError:
                return hangs
            if seen.hangs and not hangs:
                self.hung(seen)
            elif hangs and not seen.hangs:
                self.recovered(seen)
            hangs = seen.hangs
            rounds = None if rounds is None else rounds - 1
            if rounds != 0:
                self.pause(self.every)
        return hangs
