"""What the numbers of single ranks show and no program says: a loss that never changes or grows, steps that get slower,
memory that grows, an accuracy that cannot be, a learning rate that vanishes.

Anomalies are claimed only where they are beyond noise: a healthy job's loss jumps, and its first steps are slow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from phalanx.diagnosis.detectors.protocol import Job, found, median
from phalanx.model import Event
from phalanx.sources.metrics import Metrics, Reading

_Shown = tuple[str, Reading, dict[str, str]]  # the fact, where it shows, its fields
_FEWEST = 5  # readings that must agree
_FEWEST_UNMARKED = 8  # the same, where lines do not tell the step
_FEWEST_FOR_TREND = 6
_AGAIN = 2  # finite losses at the end: weights that became NaN never come back
_GROWS = 8.0  # times: how much a loss must have grown
_LEAPS = 50.0  # times: how far a first step must lead away
_SLOWS = 3.0  # times: how much longer steps must have become
_MOSTLY = 0.8
_LEAKS = 1.25  # times: how much memory must have grown, and still grow at the end
_CHANCE = 0.25  # an accuracy above this has been learnt, unless the loss is just that of guessing
_EVEN_CHANCE = 0.55
_AS_BY_CHANCE = 0.15  # how near a loss must be to that of guessing
_JUST_AS_BY_CHANCE = 0.03
_UNMOVED = 0.03  # of the loss: how far apart nearly all reports may lie
_UNLEARNT = 0.01  # of the loss: less than this is no progress
_NOTHING = 1e-6  # of the highest learning rate
_TOLD_AGAIN = 3  # reports of a number that is not as expected
_ABOUT = 0.9  # how alike the ratios must be
_OFF = 1.5  # times
_DIGITS = 3  # characters that a number has, so that rounding does not matter
_SOME, _MOST = 0.02, 0.9  # accuracies between which one that never moves has not been learnt
_LEARNT = 1.0  # a loss that a model with an accuracy of a few per cent does not reach


def detect(job: Job) -> Iterator[Event]:
    """What each rank's numbers show, taken alone."""
    for file in job.files:
        for rank, entry in file.ranks.items():
            if entry.metrics is not None:
                for fact, reading, fields in (*_of_loss(entry.metrics), *_of_the_rest(entry.metrics)):
                    yield found(fact, file.name, reading.line, rank, **fields)


def _of_loss(metrics: Metrics) -> Iterator[_Shown]:
    losses, accuracies = metrics.of("loss"), metrics.of("accuracy")
    finite = [math.isfinite(loss.value) for loss in losses]
    if not all(finite):
        if len(finite) >= _AGAIN and all(finite[-_AGAIN:]):
            yield "metric.finite-again", losses[-1], {"metric": "loss", "last": losses[-1].printed}
    elif _is_constant(losses) and losses[0].value != 0:
        yield _constant("loss", losses)
    elif _grows(losses):
        yield _change("metric.grows", "loss", losses)
    elif _is_at_chance(losses, accuracies):
        fact, last, fields = _change("metric.at-chance", "loss", losses)
        yield fact, last, {**fields, "accuracy": accuracies[-1].printed}


def _of_the_rest(metrics: Metrics) -> Iterator[_Shown]:
    own, accuracies, memory = metrics.of("own"), metrics.of("accuracy"), metrics.of("memory")
    if (times := _not_as_meant(own, metrics.of("meant"))) is not None:
        values = {"times": f"{times:.3g}", "own": own[-1].printed, "expected": metrics.of("meant")[-1].printed}
        yield "metric.not-as-expected", own[-1], values
    if _is_constant(accuracies) and len(accuracies) >= _FEWEST_UNMARKED and _SOME < accuracies[0].value < _MOST:
        yield _constant("accuracy", accuracies)
    if _is_a_sum(accuracies, metrics.of("loss")):
        highest = max(accuracies, key=lambda reading: reading.value)
        yield "metric.impossible", highest, {"metric": "accuracy", "value": highest.printed}
    if _leaks(memory):
        yield _change("metric.grows", "memory", memory)
    for kind in ("learning rate", "gradient norm"):
        readings = metrics.of(kind)
        if _is_constant(readings) and readings[0].value == 0 and _is_exact(readings[0].printed, kind):
            yield _constant(kind, readings)
    if _vanishes(rates := metrics.of("learning rate")):
        yield _change("metric.vanishes", "learning rate", rates)
    if _rises([reading.value for reading in metrics.of("seconds")]):
        yield _change("metric.slows", "step time", metrics.of("seconds"))
    elif _rises([1 / reading.value for reading in metrics.of("rate") if reading.value > 0]):
        yield _change("metric.slows", "throughput", metrics.of("rate"))


def _constant(metric: str, readings: list[Reading]) -> _Shown:
    return "metric.constant", readings[-1], {"metric": metric, "value": readings[0].printed}


def _change(fact: str, metric: str, readings: list[Reading]) -> _Shown:
    return fact, readings[-1], {"metric": metric, "first": readings[0].printed, "last": readings[-1].printed}


def _not_as_meant(own: list[Reading], meant: list[Reading]) -> float | None:
    """How many times as large as expected a number is, if it is so in every report; values near 0 are too coarse to compare."""
    by_line = {reading.line: reading.value for reading in meant}
    ratios = [one.value / by_line[one.line] for one in own if by_line.get(one.line, 0) and len(one.printed) >= _DIGITS]
    if len(ratios) < _TOLD_AGAIN or not _ABOUT < min(ratios) / max(max(ratios), _NOTHING) <= 1:
        return None
    usual = median(ratios)
    return usual if usual > _OFF or usual < 1 / _OFF else None


def _is_constant(readings: list[Reading]) -> bool:
    """The same digits at different steps; three digits may be alike by rounding."""
    if len({reading.printed for reading in readings}) != 1:
        return False
    digits = sum(character.isdigit() for character in readings[0].printed.split("e")[0].strip("0."))
    return _is_enough(readings, _FEWEST) and (digits >= 4 or readings[0].value == 0)


def _is_at_chance(losses: list[Reading], accuracies: list[Reading]) -> bool:
    """The loss is that of guessing among as many classes as the accuracy says, from the first report to the last."""
    if not _is_enough(losses, _FEWEST_FOR_TREND) or not _is_enough(accuracies, _FEWEST_FOR_TREND):
        return False
    third = len(losses) // 3
    first, last = (median(reading.value for reading in part) for part in (losses[:third], losses[-third:]))
    reached = median(reading.value for reading in accuracies[-third:])
    if not 0 < reached <= _EVEN_CHANCE or max(reading.value for reading in accuracies) > 2 * reached:
        return False
    values = sorted(reading.value for reading in losses)
    if values[-1 - len(values) // 20] - values[len(values) // 20] > _UNMOVED * last:
        return False  # it moves, so a few reports do not tell where to
    nearness = _AS_BY_CHANCE if reached <= _CHANCE else _JUST_AS_BY_CHANCE
    return first - last < _UNLEARNT * first and abs(last + math.log(reached)) < nearness * last


def _is_a_sum(accuracies: list[Reading], losses: list[Reading]) -> bool:
    """An accuracy above 1, which was added up over ranks: it comes up to their number and not beyond. A percentage that small goes with a large loss."""
    later = [reading.value for reading in accuracies[len(accuracies) // 2 :]]
    if len(accuracies) < 3 or not losses or not losses[-1].value < _LEARNT:
        return False
    bound = math.ceil(max(reading.value for reading in accuracies) - 1e-9)
    return bound > 1 and max(later) > 0.98 * bound and min(later) > max(1.0, 0.6 * bound)


def _leaks(readings: list[Reading]) -> bool:
    """Nearly every report has more than the one before, to the end: caches fill up, and then stay."""
    values = [reading.value for reading in readings]
    if not _is_enough(readings, _FEWEST_FOR_TREND + 2) or min(values) <= 0:
        return False
    ups = sum(after > before for before, after in pairwise(values))
    half = len(values) // 2
    grown, late = values[-1] - values[0], values[-1] - values[half]
    return ups >= _MOSTLY * (len(values) - 1) and values[-1] > _LEAKS * values[0] and late > grown / 4


def _is_enough(readings: list[Reading], fewest: int) -> bool:
    """Reports of different steps, or more of them where the lines do not tell the step."""
    places = {reading.at for reading in readings}
    return len(places) >= fewest or (len(places) == 1 and len(readings) >= _FEWEST_UNMARKED)


def _vanishes(rates: list[Reading]) -> bool:
    """For the second half of the reports the rate is next to nothing; schedules that end at 0 come there at the end."""
    if not _is_enough(rates, _FEWEST_FOR_TREND) or not any("e" in reading.printed for reading in rates[-2:]):
        return False
    values = [reading.value for reading in rates]
    return max(values[len(values) // 2 :]) < _NOTHING * max(values)


def _is_exact(printed: str, kind: str) -> bool:
    """A small rate is printed as 0.0000; then the digits do not tell."""
    return kind != "learning rate" or "e" in printed or len(printed) <= len("0.0")


def _grows(readings: list[Reading]) -> bool:
    """The last third lies far above the first, without overlap: a spike comes back, a divergence does not."""
    values = [reading.value for reading in readings]
    if not _is_enough(readings, _FEWEST_FOR_TREND) or min(values) <= 0:
        return False
    third = len(values) // 3
    first, last = values[:third], values[-third:]
    if median(values[1:]) > _LEAPS * values[0] and min(values[1:]) > _GROWS * values[0]:
        return True  # the first step led away, and nothing led back
    return median(last) > _GROWS * median(first) and min(last) > max(first) and values[-1] > median(last) / 2


def _rises(values: list[float]) -> bool:
    """Nearly every value is above the one before, the first (which warms up) left out."""
    values = values[1:]
    if len(values) < _FEWEST_FOR_TREND or min(values) <= 0:
        return False

    ups = sum(after > before for before, after in pairwise(values))
    third = len(values) // 3
    return ups >= _MOSTLY * (len(values) - 1) and median(values[-third:]) > _SLOWS * median(values[:third])
