"""What the numbers of several ranks show side by side: data or computing that hold up one rank and with it all, a loss or a
learning rate that is another on one rank.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from phalanx.diagnosis.detectors.protocol import Job, found, median
from phalanx.model import Event
from phalanx.sources import FileSurvey
from phalanx.sources.metrics import Reading
from phalanx.sources.progress import Position

_FEWEST = 5  # reports of each rank
_LATE = 5.0  # times: how much longer than the others' a rank's data or computing must take
_BOUND = 3.0  # times: how much longer than the computing waiting for data must be
_WORTH = 0.05  # seconds a step that are worth a word
_FEWEST_RANKS = 3  # of which two agree
_APART = 8.0  # times: how far a rank's loss must be from all others', at every step
_ALIKE = 3.0  # times: how far those others may be from each other
_SHARED = 4  # steps that all ranks reported

_Ranks = dict[int | None, list[Reading]]


def detect(job: Job) -> Iterator[Event]:
    """Ranks that are not as the others are, and all of them waiting for data."""
    yield from _held_up_by_data(job.files)
    for metric, kind, judge in (("compute time", "compute seconds", _latest), ("loss", "loss", _far_from_the_others)):
        names, readings = _of_ranks(job.files, kind)
        if (apart := judge(readings)) is not None:
            rank, own, others = apart
            yield _outlier(metric, names, readings, rank, own, others)
    names, rates = _of_ranks(job.files, "learning rate")
    if differing := _different(rates):
        rank = next(iter(differing))
        values = tuple(differing.values())
        line = rates[rank][-1].line
        yield found("metric.ranks-differ", names[rank], line, rank, metric="learning rate", values=values)


def _outlier(
    metric: str, names: dict[int | None, str], readings: _Ranks, rank: int | None, own: float, others: float
) -> Event:
    line = readings[rank][-1].line
    return found("metric.rank-outlier", names[rank], line, rank, metric=metric, own=f"{own:g}", others=f"{others:g}")


def _of_ranks(files: Sequence[FileSurvey], kind: str) -> tuple[dict[int | None, str], _Ranks]:
    """The files and the readings of all ranks that report enough, the first of which is left out: it warms up."""
    names: dict[int | None, str] = {}
    found: _Ranks = {}
    for file in files:
        for rank, entry in file.ranks.items():
            readings = entry.metrics.of(kind)[1:] if entry.metrics is not None else []
            if rank is not None and len(readings) >= _FEWEST - 1:
                names[rank], found[rank] = file.name, readings
    return names, found


def _held_up_by_data(files: Sequence[FileSurvey]) -> Iterator[Event]:
    """What waiting for data costs: all ranks, or one rank whose data take long, step after step, while all others' are there at once."""
    times: _Ranks = {}
    names: dict[int | None, str] = {}
    computing: list[float] = []
    for file in files:
        for rank, entry in file.ranks.items():
            readings = entry.metrics.of("data seconds")[1:] if entry.metrics is not None else []
            if entry.metrics is not None and len(readings) >= _FEWEST:
                times[rank], names[rank] = readings, file.name
                steps = entry.metrics.of("compute seconds") or entry.metrics.of("seconds")
                computing.append(median(reading.value for reading in steps) if steps else math.inf)
    waiting = [median(reading.value for reading in readings) for readings in times.values()]
    if waiting and min(waiting) > max(_BOUND * max(computing), _WORTH):
        rank = next(iter(times))
        spent = {"wait": f"{min(waiting):g}", "compute": f"{max(computing):g}"}
        yield found("metric.waits-for-data", names[rank], times[rank][-1].line, rank, **spent)
    times.pop(None, None)
    if (late := _latest(times)) is not None:
        yield _outlier("data time", names, times, *late)


def _latest(times: _Ranks) -> tuple[int | None, float, float] | None:
    """The rank whose times are far above all others', step after step, and both times."""
    if len(times) < 2:
        return None
    usual = {rank: median(reading.value for reading in readings) for rank, readings in times.items()}
    slowest = max(usual, key=lambda rank: usual[rank])
    others = max(value for rank, value in usual.items() if rank != slowest)
    least = sorted(reading.value for reading in times[slowest])[len(times[slowest]) // 4]
    if usual[slowest] > max(_LATE * others, _WORTH) and least > 2 * others:
        return slowest, usual[slowest], others
    return None


def _by_position(readings: _Ranks) -> dict[Position, dict[int | None, Reading]]:
    """What all of the ranks reported for the same epoch and step; nothing where they tell neither."""
    found: dict[Position, dict[int | None, Reading]] = defaultdict(dict)
    for rank, own in readings.items():
        for reading in own:
            if reading.at != (-1, -1):
                found[reading.at][rank] = reading
    return {at: by_rank for at, by_rank in found.items() if len(by_rank) == len(readings)}


def _far_from_the_others(losses: _Ranks) -> tuple[int | None, float, float] | None:
    """The rank whose loss is at every step many times all others', which are near each other. Shards differ, but not so."""
    shared = _by_position(losses)
    if len(losses) < _FEWEST_RANKS or len(shared) < _SHARED:
        return None
    found: set[int | None] = set()
    for by_rank in shared.values():
        ordered = sorted(by_rank, key=lambda rank: by_rank[rank].value)
        lowest, highest, odd = (by_rank[ordered[place]].value for place in (0, -2, -1))
        if not (lowest > 0 and highest < _ALIKE * lowest and math.isfinite(odd) and odd > _APART * highest):
            return None
        found.add(ordered[-1])
    if len(found) != 1:
        return None
    rank, last = found.pop(), list(shared.values())[-1]
    return rank, last[rank].value, max(reading.value for other, reading in last.items() if other != rank)


def _different(rates: _Ranks) -> dict[int | None, str]:
    """What ranks report, if their rates differ at every step that all of them report."""
    shared = _by_position(rates)
    if (
        len(rates) < 2
        or len(shared) < _SHARED
        or any(len({one.value for one in by.values()}) < 2 for by in shared.values())
    ):
        return {}
    last = list(shared.values())[-1]
    return {
        rank: f"rank {rank} {reading.printed}"
        for rank, reading in sorted(last.items(), key=lambda item: item[0] or 0)[:4]
    }
