"""How much memory a job of the zoo takes: sampled while it runs, so that what is set aside for it can be checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

EVERY_S = 1.0


class Scales:
    """Weighs processes every second and keeps the greatest sum.

    Pages that several processes share are counted once (the kernel's proportional set size), as ranks that
    are forked, or that load the same libraries, share most of them.
    """

    def __init__(self, processes: Callable[[], Iterable[int]], every_s: float = EVERY_S) -> None:
        self._processes = processes
        self._every_s = every_s
        self._next = 0.0
        self.peak_mb = 0

    def look(self) -> None:
        """Weigh, if the last time is long enough ago."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._every_s
        self.peak_mb = max(self.peak_mb, sum(map(proportional_kb, self._processes())) // 1024)


def proportional_kb(pid: int) -> int:
    """What the kernel charges to a process, its share of shared pages included; 0 for one that is gone or foreign.

    /proc/PID/smaps_rollup has a line like `Pss:  148213 kB`.
    """
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)
