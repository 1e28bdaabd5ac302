"""The words of the status line: how many ranks live, how far they are, how fast, how much memory, who is behind."""

from __future__ import annotations

from collections.abc import Mapping

from phalanx.model.ranks import ranges
from phalanx.run.observer import RankStatus


def status_line(ranks: Mapping[int, RankStatus], living: set[int], size: int, seconds: float) -> str:
    """One line; what is not known is left out."""
    parts = [_clock(seconds), f"{len(living)} of {size} ranks" if len(living) < size else f"{size} ranks"]
    known = [ranks[rank] for rank in sorted(living) if rank in ranks]
    steps = [one.step for one in known if one.step is not None]
    if steps:
        parts.append(f"step {min(steps)}" if min(steps) == max(steps) else f"steps {min(steps)} to {max(steps)}")
    rates = [one.steps_per_second for one in known if one.steps_per_second]
    if rates:
        parts.append(_rate(min(rates)))
    memory = [one.memory for one in known if one.memory]
    if memory:
        parts.append(f"{_bytes(sum(memory))} (largest {_bytes(max(memory))})")
    behind = {rank: one.behind for rank in sorted(living) if (one := ranks.get(rank)) and one.behind}
    if behind:
        most = max(behind.values())
        last = [rank for rank, steps_behind in behind.items() if steps_behind == most]
        if len(last) * 2 <= size:
            who = f"rank {last[0]} is" if len(last) == 1 else f"ranks {ranges(last)} are"
            unit = ranks[last[0]].unit + ("s" if most > 1 else "")
            parts.append(f"{who} {most} {unit} behind")
    return " · ".join(parts)


def _clock(seconds: float) -> str:
    minutes, left = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def _rate(rate: float) -> str:
    return f"{rate:.1f} steps/s" if rate >= 1 else f"{1 / rate:.1f} s/step"


def _bytes(count: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count >> 10} kB"
