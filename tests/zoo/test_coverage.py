"""The zoo covers what it must, and a gap would be seen."""

from __future__ import annotations

from pathlib import Path

from phalanx.zoo.coverage import coverage
from phalanx.zoo.reading import load_zoo

ZOO = Path(__file__).resolve().parents[2] / "faults"


def test_everything_is_covered() -> None:
    gaps = [
        f"{item.group} {item.name}: {item.found} of {item.wanted}"
        for item in coverage(load_zoo(ZOO))
        if not item.covered
    ]
    assert gaps == []


def test_a_gap_is_seen() -> None:
    zoo = [fault for fault in load_zoo(ZOO) if fault.symptom != "fail.out-of-memory" and not fault.healthy]
    gaps = {(item.group, item.name) for item in coverage(zoo) if not item.covered}
    assert ("symptom", "fail.out-of-memory") in gaps
    assert ("healthy", "in all") in gaps
    assert ("symptom", "perf.hang") not in gaps
