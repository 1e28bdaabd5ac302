"""A loss that ranks report as reduced over all of them, and that is the sum of their own ones instead of the mean."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from phalanx.diagnosis.detectors.protocol import Job, found, median
from phalanx.model import Event
from phalanx.sources.metrics import Metrics, Reading
from phalanx.sources.progress import Position

_FEWEST = 3  # steps at which a reduced number must be the sum
_FEWEST_ALONE = 4  # the same, where one rank tells for all
_EXACT = 0.004  # of a sum: numbers are printed rounded
_ABOUT = 0.2  # of a ratio: ranks' own numbers are alike


def detect(job: Job) -> Iterator[Event]:
    """The number that ranks made together is the sum of their own ones, step after step."""
    told: dict[Position, dict[int | None, tuple[Reading, Reading]]] = defaultdict(dict)
    names: dict[int | None, str] = {}
    for file in job.files:
        for rank, entry in file.ranks.items():
            if entry.metrics is not None:
                names[rank] = file.name
                for own, reduced in _pairs(entry.metrics):
                    told[own.at][rank] = own, reduced
    ranks = {rank for by_rank in told.values() for rank in by_rank}
    sizes = {size for file in job.files for size in file.world_sizes}
    whole = [by_rank for at, by_rank in told.items() if at != (-1, -1) and by_rank.keys() == ranks]
    if len(ranks) > 1 and len(whole) >= _FEWEST and all(_is_sum(list(by_rank.values())) for by_rank in whole):
        times = len(ranks)
    elif len(whole) >= _FEWEST_ALONE and len(ranks) == 1:
        ratios = [reduced.value / own.value for by_rank in whole for own, reduced in by_rank.values()]
        times = max(sizes, default=round(median(ratios)))
        if times < 2 or any(abs(ratio / times - 1) > _ABOUT for ratio in ratios):
            return
    else:
        return
    rank, (own, reduced) = next(iter(whole[-1].items()))
    values = {"reduced": reduced.printed, "own": own.printed, "times": times}
    yield found("metric.sum-of-ranks", names[rank], reduced.line, rank, metric="loss", **values)


def _pairs(metrics: Metrics) -> Iterator[tuple[Reading, Reading]]:
    """A rank's own loss and the one that all made together, of the same line."""
    local = metrics.of("local loss") or metrics.of("loss")
    by_line = {reading.line: reading for reading in metrics.of("reduced loss")}
    for own in local:
        reduced = by_line.get(own.line)
        if reduced is not None and own.value > 0 and math.isfinite(own.value) and math.isfinite(reduced.value):
            yield own, reduced


def _is_sum(pairs: list[tuple[Reading, Reading]]) -> bool:
    total = sum(own.value for own, _ in pairs)
    return all(abs(reduced.value - total) <= _EXACT * total for _, reduced in pairs)
