"""What the course of training shows and no program says: a loss that never changes or grows, steps that get slower,
memory that grows, an accuracy that cannot be, a learning rate that vanishes.

Each becomes a sentence that rules match like a log's line. Such courses are looked for in logs only, and claimed only
where they are beyond noise: a healthy job's loss jumps, and its first steps are slow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from phalanx.diagnose.compilations import compiled_again
from phalanx.diagnose.courses_of_ranks import between_ranks, middle
from phalanx.diagnose.last_words import last_words
from phalanx.diagnose.openings import too_few_devices
from phalanx.diagnose.scaling import compared
from phalanx.diagnose.standstill import standstills
from phalanx.model import Event, EventKind
from phalanx.model.fact import Fact
from phalanx.model.facts import make_fact
from phalanx.sources import Collector, FileSurvey, Observations
from phalanx.sources.courses import Course, Reading
from phalanx.sources.facts import fact_event

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


def take_in(seen: Observations, collector: Collector) -> None:
    """Add the sentences, and what rules match in them, to the observations."""
    for file in seen.files:
        if file.is_report:
            continue
        for event in _sentences(file):
            seen.events.append(event)
            if event.fact is None:
                seen.matches.extend(collector.matches_of(event))
    files = [file for file in seen.files if not file.is_report]
    found = (
        between_ranks(files),
        compared(files),
        too_few_devices(files),
        compiled_again(seen),
        standstills(seen),
        last_words(seen),
    )
    for event in [event for sentences in found for event in sentences]:
        seen.events.append(event)
        seen.matches.extend(collector.matches_of(event))


def _sentences(file: FileSurvey) -> Iterator[Event]:
    for rank, entry in file.ranks.items():
        if entry.course is None:
            continue
        for text, reading in _shown_by(entry.course):
            if isinstance(text, Fact):
                yield fact_event(text, file.name, reading.line, rank)
                continue
            yield Event(EventKind.LINE, f"training course: {text}", file.name, reading.line, rank, source="course")


def _shown_by(course: Course) -> Iterator[tuple[str | Fact, Reading]]:
    losses = course.of("loss")
    finite = [math.isfinite(loss.value) for loss in losses]
    if not all(finite):
        if len(finite) >= _AGAIN and all(finite[-_AGAIN:]):
            yield "the loss was not finite and is finite again", losses[-1]
    elif _is_constant(losses) and losses[0].value != 0:
        yield f"the loss stays at {losses[0].printed} from the first report to the last", losses[-1]
    elif _grows(losses):
        yield f"the loss grows from {losses[0].printed} to {losses[-1].printed}", losses[-1]
    elif _is_at_chance(losses, course.of("accuracy")):
        yield (
            f"the model guesses: the loss goes from {losses[0].printed} to {losses[-1].printed}, the accuracy is {course.of('accuracy')[-1].printed}",
            losses[-1],
        )
    if (times := _not_as_meant(course.of("own"), course.of("meant"))) is not None:
        own, meant = course.of("own")[-1], course.of("meant")[-1]
        yield (
            f"what is reported is {times:.3g} times what its author expects, {own.printed} and not {meant.printed}",
            own,
        )
    accuracies = course.of("accuracy")
    if _is_constant(accuracies) and len(accuracies) >= _FEWEST_UNMARKED and _SOME < accuracies[0].value < _MOST:
        yield f"the accuracy stays at {accuracies[0].printed} from the first report to the last", accuracies[-1]
    if _is_a_sum(course.of("accuracy"), losses):
        highest = max(course.of("accuracy"), key=lambda reading: reading.value)
        yield f"an accuracy of {highest.printed}, which no model has", highest
    if _leaks(course.of("memory")):
        readings = course.of("memory")
        yield f"memory grows with every report, from {readings[0].printed} to {readings[-1].printed}", readings[-1]
    for kind in ("learning rate", "gradient norm"):
        readings = course.of(kind)
        if _is_constant(readings) and readings[0].value == 0 and _is_exact(readings[0].printed, kind):
            yield f"the {kind} is 0 in every report", readings[-1]
    if _vanishes(rates := course.of("learning rate")):
        values = {"metric": "learning rate", "first": rates[0].printed, "last": rates[-1].printed}
        yield make_fact("metric.vanishes", values, source="metric"), rates[-1]
    if _rises([reading.value for reading in course.of("seconds")]):
        readings = course.of("seconds")
        yield f"steps take longer and longer, from {readings[0].printed} to {readings[-1].printed}", readings[-1]
    elif _rises([1 / reading.value for reading in course.of("rate") if reading.value > 0]):
        readings = course.of("rate")
        yield f"throughput falls from {readings[0].printed} to {readings[-1].printed} a second", readings[-1]


def _not_as_meant(own: list[Reading], meant: list[Reading]) -> float | None:
    """How many times as large as expected a number is, if it is so in every report; values near 0 are too coarse to compare."""
    by_line = {reading.line: reading.value for reading in meant}
    ratios = [one.value / by_line[one.line] for one in own if by_line.get(one.line, 0) and len(one.printed) >= _DIGITS]
    if len(ratios) < _TOLD_AGAIN or not _ABOUT < min(ratios) / max(max(ratios), _NOTHING) <= 1:
        return None
    usual = middle(ratios)
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
    first, last = (middle(reading.value for reading in part) for part in (losses[:third], losses[-third:]))
    reached = middle(reading.value for reading in accuracies[-third:])
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
    if middle(values[1:]) > _LEAPS * values[0] and min(values[1:]) > _GROWS * values[0]:
        return True  # the first step led away, and nothing led back
    return middle(last) > _GROWS * middle(first) and min(last) > max(first) and values[-1] > middle(last) / 2


def _rises(values: list[float]) -> bool:
    """Nearly every value is above the one before, the first (which warms up) left out."""
    values = values[1:]
    if len(values) < _FEWEST_FOR_TREND or min(values) <= 0:
        return False

    ups = sum(after > before for before, after in pairwise(values))
    third = len(values) // 3
    return ups >= _MOSTLY * (len(values) - 1) and middle(values[-third:]) > _SLOWS * middle(values[:third])
