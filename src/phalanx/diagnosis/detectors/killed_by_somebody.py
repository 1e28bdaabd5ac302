"""Ranks that were killed although neither the kernel's log nor their control group shows a lack of memory."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.diagnosis.detectors.protocol import Job
from phalanx.model import Event, EventKind
from phalanx.model.facts import make_fact
from phalanx.sources.facts import fact_event


def detect(job: Job) -> Iterator[Event]:
    """A fact for each rank that the watch saw killed by a signal that somebody sent, not for memory."""
    for event in job.events:
        why = event.data.get("why") if event.kind is EventKind.EXIT else None
        if event.rank is None or not isinstance(why, dict) or why.get("cause") != "killed" or event.data.get("by"):
            continue
        fact = make_fact(
            "exit.killed-by-somebody", {"signal": str(why.get("signal"))}, ranks=(event.rank,), source="watch"
        )
        yield fact_event(fact, event.file, event.line, event.rank)
