"""Brings what the traces show among the other observations, as facts that rules ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from phalanx.diagnosis.collective_analysis import Break, Observation, observe
from phalanx.model import Event, Frame, Unchecked
from phalanx.model.ranks import name_ranks
from phalanx.model.trace import Traces
from phalanx.sources import FileSurvey, Observations
from phalanx.sources.facts import fact_event

_PLACE = re.compile(r"(?P<file>.+):(?P<line>\d+) in (?P<function>.*)")
_FRAMEWORKS = {"flight recorder": "torch", "kineto": "torch", "horovod": "horovod"}
_MOST_LIKEWISE = 32


def with_traces(seen: Observations, jobs: Sequence[Traces]) -> Observations:
    """The same with the files and events of the largest job; what else was there is said."""
    unchecked = [*seen.unchecked, *(one for job in jobs for one in job.unchecked)]
    if not jobs or not jobs[0].files:
        return replace(seen, unchecked=unchecked)
    job = jobs[0]
    for other in jobs[1:]:
        what = f"traces of another job beside it: {other.files[0].name} and {len(other.files) - 1} more"
        unchecked.append(Unchecked(what, "a folder of its own for each job"))
    found = observe(job, unchecked)
    return replace(
        seen,
        files=[*seen.files, *_surveys(job)],
        events=[*seen.events, *(event for one in found for event in _events(one, job))],
        unchecked=[*unchecked, *_not_judged(job, found)],
    )


def _surveys(job: Traces) -> Iterator[FileSurvey]:
    for file in job.files:
        survey = FileSurvey(file.name, file.rank)
        survey.signs.update(framework for form, framework in _FRAMEWORKS.items() if file.form.startswith(form))
        if job.world_size:
            survey.world_sizes.append(job.world_size)
        if file.host:
            survey.hosts[file.rank] = file.host
        yield survey


def _events(one: Observation, job: Traces) -> Iterator[Event]:
    """One event with the whole sentence, and a short one for each further rank that it is about."""
    files = {file.rank: file.name for file in job.files}
    place = _PLACE.fullmatch(one.place or "")
    frames = (Frame(place["file"], int(place["line"]), place["function"]),) if place else ()
    shown = files.get(one.shown_by if one.shown_by is not None else -1, next(iter(files.values())))
    first = fact_event(one.fact, shown, rank=one.shown_by, frames=frames, data={"missing": one.ranks})
    yield first
    for rank in [rank for rank in one.ranks or one.waiting if rank != one.shown_by][:_MOST_LIKEWISE]:
        if rank in files:
            yield replace(first, text=f"the same in the trace of rank {rank}", file=files[rank], rank=rank)


def _not_judged(job: Traces, found: Sequence[Observation]) -> Iterator[Unchecked]:
    """Ranks whose trace is missing and who are not accused for that; files that were cut short are said by their reader."""
    world = frozenset(range(job.world_size or 0)) | {rank for row in job.groups["members"].drop_nulls() for rank in row}
    accused = {rank for one in found if one.kind is Break.NO_TRACE for rank in one.ranks}
    missing = world - job.ranks - accused
    if missing:
        yield Unchecked(f"collective traces of {name_ranks(missing)}", "the dumps of these ranks", about="traces")
