"""A loss that becomes NaN or infinite and stays so: since which step, and on which rank first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from phalanx.diagnosis.detectors.protocol import Job
from phalanx.model import Event
from phalanx.model.facts import make_fact
from phalanx.model.ranks import name_ranks
from phalanx.sources.facts import fact_event
from phalanx.sources.metrics import Reading
from phalanx.sources.progress import Position

_NOWHERE = (-1, -1)
_TIMES = 10.0  # that a loss grows: it jumps less between healthy steps
_SMALL = 1e-3


def detect(job: Job) -> Iterator[Event]:
    """One fact for the job: a NaN on one rank reaches the others with the next all-reduce."""
    since: dict[int | None, tuple[Reading, str]] = {}
    finite: dict[int | None, set[Position]] = {}
    before: list[str] = []
    for file in job.files:
        for rank, entry in file.ranks.items():
            readings = entry.metrics.of("loss") if entry.metrics is not None else []
            if (first := _turns(readings)) is not None:
                since[rank] = (first, file.name)
                before.append(_growth(readings, first))
            if readings:
                finite[rank] = {one.at for one in readings if math.isfinite(one.value)}
    if not since:
        return
    rank, (first, name) = min(since.items(), key=lambda item: item[1][0].at)
    alike = tuple(sorted(rank for rank, (one, _) in since.items() if rank is not None and one.at == first.at))
    # A rank was first only if all others reported a loss for that step, and it was a number.
    others = finite.keys() - set(alike)
    is_first = first.at != _NOWHERE and alike and others and all(first.at in finite[other] for other in others)
    fields = {
        "metric": "loss",
        "value": "NaN" if math.isnan(first.value) else "infinite",
        "since": _named(first.at),
        "first": name_ranks(alike) if is_first else "",
        "grew": next(filter(None, before), ""),
        "early": "yes" if not any(finite.values()) else "",  # no loss was ever a number
    }
    yield fact_event(make_fact("metric.not-finite", fields, source="metric"), name, first.line, rank)
    if is_first:
        fact = make_fact("metric.not-finite-first", fields, ranks=alike, source="metric")
        yield fact_event(fact, name, first.line, rank)


def _growth(readings: Sequence[Reading], first: Reading) -> str:
    """`0.7 to 2e+08`, where the loss had grown many times over before it was no number any more, as it does at too high a rate."""
    values = [abs(one.value) for one in readings[: readings.index(first)] if math.isfinite(one.value)]
    if len(values) < 2 or values[-1] <= _TIMES * max(min(values), _SMALL):
        return ""
    return f"{min(values):g} to {values[-1]:g}"


def _turns(readings: Sequence[Reading]) -> Reading | None:
    """The first of those that are no number to the end; None if the last is one, or there is none."""
    found = None
    for reading in reversed(readings):
        if math.isfinite(reading.value):
            break
        found = reading
    return found


def _named(at: Position) -> str:
    """`epoch 3 step 50`, `step 50`; empty where reports carry no number."""
    return " ".join(f"{name} {number}" for name, number in zip(("epoch", "step"), at, strict=True) if number >= 0)
