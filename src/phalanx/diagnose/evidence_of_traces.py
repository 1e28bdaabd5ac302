"""Brings what the traces show among the other observations, so that rules, blame and fixes treat it like a log's line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from phalanx.diagnose.formation import Break, Observation, observe
from phalanx.model import Event, EventKind, Frame, Unchecked
from phalanx.model.ranks import name_ranks
from phalanx.model.trace import Traces
from phalanx.sources import Collector, FileSurvey, Match, Observations

_PLACE = re.compile(r"(?P<file>.+):(?P<line>\d+) in (?P<function>.*)")
_FRAMEWORKS = {"flight recorder": "torch", "kineto": "torch", "horovod": "horovod"}
_MOST_LIKEWISE = 32


def take_in(jobs: Sequence[Traces], seen: Observations, collector: Collector) -> None:
    """Add the files, events and matches of the largest job; say what else was there."""
    for job in jobs:
        seen.unchecked.extend(job.unchecked)
    if not jobs or not jobs[0].files:
        return
    job = jobs[0]
    for other in jobs[1:]:
        what = f"traces of another job beside it: {other.files[0].name} and {len(other.files) - 1} more"
        seen.unchecked.append(Unchecked(what, "a folder of its own for each job"))
    seen.files.extend(_surveys(job))
    found = observe(job, seen.unchecked)
    for one in found:
        _add(one, job, seen, collector)
    seen.unchecked.extend(_not_judged(job, found))


def _surveys(job: Traces) -> Iterator[FileSurvey]:
    for file in job.files:
        survey = FileSurvey(file.name, file.rank)
        survey.signs.update(framework for form, framework in _FRAMEWORKS.items() if file.form.startswith(form))
        if job.world_size:
            survey.world_sizes.append(job.world_size)
        if file.host:
            survey.hosts[file.rank] = file.host
        yield survey


def _add(one: Observation, job: Traces, seen: Observations, collector: Collector) -> None:
    """One event with the whole sentence, and a short one for each further rank that it is about."""
    files = {file.rank: file.name for file in job.files}
    first = _event(one, one.shown_by, files, one.text)
    matches = collector.matches_of(first)
    seen.events.append(first)
    seen.matches.extend(matches)
    about = one.ranks or one.waiting
    for rank in [rank for rank in about if rank != one.shown_by][:_MOST_LIKEWISE]:
        if rank in files:
            event = _event(one, rank, files, f"collective trace: likewise in rank {rank}'s trace")
            seen.events.append(event)
            seen.matches.extend(Match(match.key, event, match.captures) for match in matches)


def _event(one: Observation, rank: int | None, files: dict[int, str], text: str) -> Event:
    kind = EventKind.TRACE if one.kind is Break.STRAGGLER else EventKind.STALL
    place = _PLACE.fullmatch(one.place or "")
    frames = (Frame(place["file"], int(place["line"]), place["function"]),) if place else ()
    file = files.get(rank if rank is not None else -1, next(iter(files.values())))
    return Event(
        kind,
        text,
        file,
        0,
        rank,
        source="trace",
        frames=frames,
        data={"missing": one.ranks, "break": one.kind.value} if one.ranks else {},
    )


def _not_judged(job: Traces, found: Sequence[Observation]) -> Iterator[Unchecked]:
    """Ranks whose trace is missing and who are not accused for that; files that were cut short are said by their reader."""
    world = frozenset(range(job.world_size or 0)) | {rank for row in job.groups["members"].drop_nulls() for rank in row}
    accused = {rank for one in found if one.kind is Break.NO_TRACE for rank in one.ranks}
    missing = world - job.ranks - accused
    if missing:
        yield Unchecked(f"collective traces of {name_ranks(missing)}", "the dumps of these ranks")
