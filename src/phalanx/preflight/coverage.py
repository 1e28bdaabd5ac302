"""What a check looked at, in numbers: without them "nothing wrong" does not say how much that is worth."""

from __future__ import annotations

from collections.abc import Sequence

from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.variables import known_names


def coverage_of(all_facts: Sequence[HostFacts], comparisons: int, calls: int = 0, measured: int = 0) -> str:
    """`31 comparisons of 2,480 facts, 14 variables against 1,214 known names, 18 connections, 6 paths measured`."""
    told = sum(_count(section) for one in all_facts for section in one.facts.values())
    variables = {name for one in all_facts for name in one.variables if name in known_names()}
    parts = [
        f"{comparisons} comparisons of {told:,} facts",
        f"{_counted(len(variables), 'variable')} against {len(known_names()):,} known names",
        _counted(calls, "connection") if calls else "",
        f"{_counted(measured, 'path')} measured (latency, loss, bandwidth)" if measured else "",
    ]
    return ", ".join(filter(None, parts))


def _count(told: object) -> int:
    """Single values, however deep they lie."""
    if isinstance(told, dict):
        return sum(map(_count, told.values()))
    return sum(map(_count, told)) if isinstance(told, list) else 1


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' if count != 1 else ''}"
