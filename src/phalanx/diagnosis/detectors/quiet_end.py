"""Jobs that were ended from outside long after their last report: they had hung, though no program says so.

Only times that lines bear are compared, and only where reports had come much more often before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise

from phalanx.diagnosis.detectors.protocol import Job, found
from phalanx.model import Event
from phalanx.sources import FileSurvey
from phalanx.sources.readers.interruptions import SOURCE
from phalanx.sources.times import time_of

_LEAST = 10.0  # seconds without a report that are worth a word
_TIMES = 20.0  # times the usual interval between reports
_RESOLUTION = 0.5  # seconds: many logs tell whole ones
_YEAR_UNKNOWN = 1972  # what lines without a year are read as


def detect(job: Job) -> Iterator[Event]:
    """At most one fact: how long nothing was reported before the job was ended."""
    ends = [event for event in job.events if event.source == SOURCE and event.time is not None]
    reports = list(_last_reports(job.files))
    if not ends or not reports:
        return
    last, interval, name, line = max(reports)
    later = [time for event in ends if (time := _without_year(event.time or 0.0)) > last]
    quiet = min(later, default=last) - last
    if quiet > max(_LEAST, _TIMES * interval):
        yield found("output.quiet-before-end", name, line, None, seconds=round(quiet), interval=max(round(interval), 1))


def _last_reports(files: Iterable[FileSurvey]) -> Iterator[tuple[float, float, str, int]]:
    """Of each speaker the time of its last report, the usual interval between its last ones, and where it stands."""
    for file in files:
        for entry in file.ranks.values():
            times = [time_of(text) for text in entry.recent_reports]
            known = [_without_year(time) for time in times if time is not None]
            if len(known) >= 3 and entry.last_progress is not None:
                steps = max(after - before for before, after in pairwise(known))
                if steps >= 0:
                    yield known[-1], max(steps, _RESOLUTION), file.name, entry.last_progress


def _without_year(time: float) -> float:
    """The same moment of a year that some forms do not tell, so that all can be compared."""
    return datetime.fromtimestamp(time, UTC).replace(year=_YEAR_UNKNOWN).timestamp()
