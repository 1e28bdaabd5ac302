"""Several runs of a job in one file, appended by a shell or a scheduler: the last one is judged, the earlier ones are listed.

torchrun prints one summary when it gives up, in which every rank stands once. A rank that stands in a second one has been
started again by somebody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from phalanx.model import Event, EventKind
from phalanx.model.ranks import name_ranks
from phalanx.sources import Observations


def last_run(seen: Observations) -> tuple[Observations, tuple[str, ...]]:
    """What belongs to the last run of each file, and a line on each earlier one."""
    ends: dict[str, int] = {}
    told: list[str] = []
    for file in seen.files:
        summaries = _summaries([event for event in seen.events if event.file == file.name])
        for summary in summaries[:-1]:
            ends[file.name] = summary[-1].line
            codes = ", ".join(sorted({str(event.data["code"]) for event in summary}))
            ranks = name_ranks(event.rank for event in summary if event.rank is not None)
            told.append(f"an earlier run in {file.name}, up to line {summary[-1].line}: {ranks} ended with {codes}")
    if not ends:
        return seen, ()
    events = [event for event in seen.events if event.line > ends.get(event.file, -1)]
    matches = [match for match in seen.matches if match.event.line > ends.get(match.event.file, -1)]
    return replace(seen, events=events, matches=matches), tuple(told)


def _summaries(events: Sequence[Event]) -> list[list[Event]]:
    """The exits of each of a launcher's summaries, which tell the time of each."""
    found: list[list[Event]] = []
    exits = [event for event in events if event.kind is EventKind.EXIT and event.data.get("at") is not None]
    for event in sorted(exits, key=lambda one: one.line):
        if not found or any(event.rank == other.rank for other in found[-1]):
            found.append([])
        found[-1].append(event)
    return found
