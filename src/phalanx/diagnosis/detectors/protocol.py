"""What a detector is given, and what it returns: `detect(job: Job) -> Iterator[Event]`, each event with a fact."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from phalanx.model import Event
from phalanx.model.facts import make_fact
from phalanx.sources import FileSurvey
from phalanx.sources.facts import fact_event


@dataclass(frozen=True, slots=True)
class Job:
    """What was read of a job: its logs (people's reports left out) and the events in them."""

    files: tuple[FileSurvey, ...]
    events: tuple[Event, ...]


def found(fact_id: str, file: str, line: int, rank: int | None, **fields: Any) -> Event:
    """The event of a fact that shows at a line of a rank's output, and is about that rank."""
    fact = make_fact(fact_id, fields, ranks=() if rank is None else (rank,), source="metric")
    return fact_event(fact, file, line, rank)


def median(values: Iterable[float]) -> float:
    """The median. `statistics` takes long to load, and few logs get here."""
    from statistics import median as exact

    return float(exact(values))
