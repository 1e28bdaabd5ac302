"""Functions that are traced or compiled again and again while the job trains, which no program holds to be an error.

JAX counts for us where it is asked to log compilations. TensorFlow warns twice at most, also of functions that settle then; there the
times of the steps tell: a step that was traced once is much faster than the first, and than those of which the warning says that they were traced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from phalanx.diagnosis.detectors.protocol import Job, found, median
from phalanx.model import Event
from phalanx.sources import FileSurvey
from phalanx.sources.survey import RankSurvey

_FEWEST = 6  # compilations of one function, or times of steps
_OFTEN = 0.5  # of the reports of training between the first compilation and the last
_AS_SLOW = 0.4  # of the time of a step that was traced: tracing takes most of it


def detect(job: Job) -> Iterator[Event]:
    """Functions that are compiled at nearly every step."""
    by_name: dict[tuple[str, int | None, str], list[Event]] = defaultdict(list)
    for event in job.events:
        if event.source in ("compilation", "retracing"):
            by_name[event.file, event.rank, str(event.data["what"])].append(event)
    files = {file.name: file for file in job.files}
    told: set[tuple[str, int | None]] = set()
    for (name, rank, what), events in by_name.items():
        entry = _speaker(files.get(name), rank)
        if entry is None or (name, rank) in told:
            continue
        if events[0].source == "compilation":
            fact, fields = "compile.repeated", {"times": len(events)}
            holds = len(events) >= _FEWEST and _is_at_most_steps(events, entry)
        else:
            fact, fields = "compile.retraced", {}
            holds = _steps_stay_slow(entry, events)
        if holds:
            told.add((name, rank))
            yield found(fact, name, events[-1].line, rank, function=what, **fields)


def _speaker(file: FileSurvey | None, rank: int | None) -> RankSurvey | None:
    return file.ranks.get(rank) if file is not None else None


def _is_at_most_steps(events: list[Event], entry: RankSurvey) -> bool:
    """Reports of training stand between the compilations, about as many."""
    if entry.metrics is None:
        return False
    lines = {reading.line for kind in ("loss", "seconds", "rate") for reading in entry.metrics.of(kind)}
    between = sum(events[0].line < line < events[-1].line for line in lines)
    return between >= _FEWEST - 1 and len(events) >= _OFTEN * between


def _steps_stay_slow(entry: RankSurvey, warnings: list[Event]) -> bool:
    readings = entry.metrics.of("seconds") if entry.metrics is not None else []
    if len(readings) <= _FEWEST or readings[0].value <= 0:
        return False
    usual = median(reading.value for reading in readings[len(readings) // 2 :])
    if usual > _AS_SLOW * readings[0].value:
        return True
    # The first also waits for the peers and for memory. Of those before the warning it is known that each was traced.
    traced = [reading.value for reading in readings[1:] if reading.line < warnings[-1].line]
    return bool(traced) and all(map(_says_every_call, warnings)) and usual > _AS_SLOW * median(traced)


def _says_every_call(warning: Event) -> bool:
    """Six of the last six calls, say; with fewer of more it was traced now and then."""
    traced, _, rest = warning.text.partition(" out of the last ")
    return bool(rest) and traced.rsplit(":", 1)[-1].split()[-1:] == rest.split()[:1]
