"""A limit on a rank's address space (`ulimit -v`): allocations and threads fail by it in many words, and none of them names it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from phalanx.model.facts import make_fact
from phalanx.run.observer import Observation

_PROC = Path("/proc")
_LIMIT = re.compile(r"^Max address space\s+(\d+)", re.M)
_PEAK = re.compile(r"^VmPeak:\s+(\d+) kB", re.M)


class Limits:
    """Notes the limits of ranks while they live, because a process takes them along when it ends."""

    def __init__(self, proc: Path = _PROC) -> None:
        self._proc = proc
        self._seen: dict[int, tuple[int, int]] = {}  # by rank: the limit, and how much was taken at most

    def note(self, pids: Mapping[int, int]) -> None:
        """A look at every rank."""
        for rank, pid in pids.items():
            limit = self._figure(pid, "limits", _LIMIT)
            if limit is not None:
                self._seen[rank] = (limit, (self._figure(pid, "status", _PEAK) or 0) * 1024)

    def tell(self, rank: int) -> list[Observation]:
        """Of a rank that failed: what it was allowed; nothing where that was without limit."""
        if rank not in self._seen:
            return []
        limit, peak = (f"{value / (1 << 30):.1f} GiB" for value in self._seen[rank])
        fact = make_fact("rank.limited", {"limit": limit, "peak": peak}, ranks=(rank,), source="watch")
        text = f"rank {rank} may use {limit} of address space (ulimit -v), and had taken {peak}"
        return [Observation("limit", (rank,), text, {"limit": limit, "peak": peak}, (fact,))]

    def _figure(self, pid: int, file: str, expression: re.Pattern[str]) -> int | None:
        try:
            found = expression.search((self._proc / str(pid) / file).read_text(encoding="ascii", errors="replace"))
        except OSError:
            return None
        return int(found[1]) if found is not None else None
