"""What numbers show that were reached with few and with many devices, or by one rank and by all: a loss that grows with the devices,
a reduction that added up where it should have averaged, a throughput that falls.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from phalanx.diagnose.detectors.protocol import Job, found, median
from phalanx.model import Event
from phalanx.sources import FileSurvey
from phalanx.sources.metrics import Metrics, Reading
from phalanx.sources.progress import Position
from phalanx.sources.scales import Measured

_Shown = tuple[str, dict[str, Any], Measured]  # the fact, its fields, where it shows
_FEWEST = 3  # steps at which a reduced number must be the sum
_FEWEST_ALONE = 4  # the same, where one rank tells for all
_SAME_STEPS = 2  # steps reported with both numbers of devices
_COUNTS = 3  # numbers of devices with which one loss each was reported
_EXACT = 0.004  # of a sum: numbers are printed rounded
_EXACT_IN_TABLE = 0.05  # of the loss for each device, from run to run
_ABOUT = 0.2  # of a ratio: ranks' own numbers are alike, and so are first losses of two runs
_NO_GAIN = 0.95  # times the throughput of one device that more of them reach at most


def detect(job: Job) -> Iterator[Event]:
    """Sums that should be means, and runs with another number of devices."""
    yield from _added_up(job.files)
    for file in job.files:
        for rank, entry in file.ranks.items():
            scales = entry.scales
            if scales is None or len(scales.counts) < 2:
                continue
            for fact, fields, measured in (*_loss_by_devices(scales.measured), *_speed_by_devices(scales.measured)):
                yield found(fact, file.name, measured.line, rank, **fields)


def _added_up(files: Sequence[FileSurvey]) -> Iterator[Event]:
    """The number that ranks made together is the sum of their own ones, step after step."""
    told: dict[Position, dict[int | None, tuple[Reading, Reading]]] = defaultdict(dict)
    names: dict[int | None, str] = {}
    for file in files:
        for rank, entry in file.ranks.items():
            if entry.metrics is not None:
                names[rank] = file.name
                for own, reduced in _pairs(entry.metrics):
                    told[own.at][rank] = own, reduced
    ranks = {rank for by_rank in told.values() for rank in by_rank}
    sizes = {size for file in files for size in file.world_sizes}
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


def _loss_by_devices(measured: list[Measured]) -> Iterator[_Shown]:
    """Losses at the same steps of one run and of another with N times the devices are N times as large, or an Nth."""
    by_devices: dict[int, dict[Position, Measured]] = defaultdict(dict)
    for one in measured:
        if one.kind == "loss" and one.value > 0 and math.isfinite(one.value):
            by_devices[one.devices].setdefault(one.at, one)
    few = min(by_devices, default=0)
    for many in sorted(by_devices):
        shared = sorted(by_devices[few].keys() & by_devices[many].keys())
        if many < 2 * few or len(shared) < _SAME_STEPS:
            continue
        # Later ones may differ, because larger steps were taken.
        ratios = [by_devices[many][at].value / by_devices[few][at].value for at in shared[:_SAME_STEPS]]
        times = many / few
        for is_larger, factor in ((True, times), (False, 1 / times)):
            if abs(ratios[0] / factor - 1) < _ABOUT / 2 and abs(ratios[1] / factor - 1) < 2 * _ABOUT:
                yield _scaled(few, many, is_larger, by_devices[many][shared[0]])
                return
    yield from _loss_in_a_table(by_devices)


def _loss_in_a_table(by_devices: dict[int, dict[Position, Measured]]) -> Iterator[_Shown]:
    """One loss for each number of devices, and all are proportional to it: two would be chance."""
    if len(by_devices) < _COUNTS or any(len(told) != 1 for told in by_devices.values()):
        return
    single = {devices: next(iter(told.values())) for devices, told in by_devices.items()}
    few, many = min(single), max(single)
    for is_larger, power in ((True, 1), (False, -1)):
        shares = [one.value / devices**power for devices, one in single.items()]
        if max(shares) < (1 + _EXACT_IN_TABLE) * min(shares):
            yield _scaled(few, many, is_larger, single[many])
            return


def _scaled(few: int, many: int, is_larger: bool, shown: Measured) -> _Shown:
    way = "larger" if is_larger else "smaller"
    fields = {"metric": "loss", "devices": many, "base": few, "times": f"{many / few:g}", "way": way}
    return "metric.scales-with-devices", fields, shown


def _speed_by_devices(measured: list[Measured]) -> Iterator[_Shown]:
    """More devices together get no more done in a second than fewer, or take longer by as many times."""
    for kind in ("rate", "seconds"):
        by_devices: dict[int, list[Measured]] = defaultdict(list)
        for one in measured:
            if one.kind == kind and one.value > 0:
                by_devices[one.devices].append(one)
        few, many = min(by_devices, default=0), max(by_devices, default=0)
        if many < 2 * few or not few:
            continue
        before, after = (median(one.value for one in by_devices[count]) for count in (few, many))
        is_each = any(one.is_each for one in by_devices[many])
        speed = after / before if kind == "rate" else before / after
        # What is measured for each device, or for one step, falls a little with every device; that it falls by as many times is no gain at all.
        gain = speed * many / few if is_each or kind == "seconds" else speed
        if gain < _NO_GAIN:
            fields = {"devices": many, "base": few, "metric": kind, "own": f"{after:g}", "before": f"{before:g}"}
            yield "metric.no-gain-from-devices", fields, by_devices[many][-1]
            return
