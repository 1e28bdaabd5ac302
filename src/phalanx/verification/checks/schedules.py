"""Learning-rate schedules that run at another pace than the training they were made for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from phalanx.model import Confidence
from phalanx.verification.evidence import Evidence, RankEvidence, Record, Step
from phalanx.verification.found import Found

_FEWEST = 3
_HORIZONS = ("T_max", "num_training_steps", "total_steps")
_DECAYS = ("StepLR", "MultiStepLR", "ExponentialLR")
_COLLAPSED = 1e-3  # of the first rate, after one epoch of many
_EXPLAINS = ("learning-rate-collapses",)
_NOTHING = 1e-12
_ROUNDING = 1.1  # the last, shorter group of each epoch is a step more than the division says
_IDLE = 0.25  # of all steps


@dataclass(frozen=True)
class Pace:
    """One scheduler of one rank beside the steps of its optimizer."""

    told: Record
    steps: tuple[Step, ...]
    counts: tuple[int, ...]  # how often it stepped between two steps
    at: int  # how far it came
    line: str
    by: str
    places: tuple[str, ...] = ()  # the user's lines that step it

    @property
    def each(self) -> int:
        """How often it steps for each optimizer step, where that is always the same; 0 where it is not."""
        found = set(self.counts)
        return found.pop() if len(found) == 1 and len(self.counts) >= _FEWEST else 0

    @property
    def horizon(self) -> int:
        """After how many of its steps the schedule is over; 0 where it does not say."""
        return next(
            (int(value) for name in _HORIZONS if isinstance(value := self.told["told"].get(name), (int, float))), 0
        )


def check(evidence: Evidence) -> Iterator[Found]:
    """On one rank: that all ranks agree is another check's."""
    if not evidence.ranks:
        return
    one = evidence.ranks[min(evidence.ranks)]
    for told in one.all("scheduler"):
        pace = _pace(one, told)
        if pace is None:
            continue
        found = (
            _too_often(pace, evidence.size)
            or _prepared(pace, evidence)
            or _too_short(pace)
            or _at_zero(pace, evidence.size)
            or _too_long(pace, one, evidence.size)
            or _collapses(pace, one)
        )
        if found is not None:
            yield found


def _pace(one: RankEvidence, told: Record) -> Pace | None:
    steps = tuple(step for step in one.steps if step.optimizer == told["o"])
    mine = [[at for at in step.all("schedule") if at["s"] == told["s"]] for step in steps]
    last = [
        at
        for end in one.all("end")
        for kind, at in end.get("events", ())
        if kind == "schedule" and at["s"] == told["s"]
    ]
    every = [at for group in mine for at in group] + last
    if len(steps) < _FEWEST or not every:
        return None
    furthest = max((int(at["at"]) for at in every if isinstance(at["at"], int)), default=0)
    counts = tuple(len(group) for group in mine[1:])  # what comes before the first step is not between two
    places = tuple(dict.fromkeys(str(at["line"]) for at in every))
    return Pace(told, steps, counts, furthest, str(every[0]["line"]), str(every[0].get("by", "")), places)


def _too_often(pace: Pace, size: int) -> Found | None:
    each = pace.each
    if each < 2 or pace.by == "accelerate" or _fits(pace):
        return None
    passes = {len(step.all("backward")) for step in pace.steps if step.is_looked_at}
    if len(pace.places) == each:
        why = f"at {' and at '.join(pace.places)}"
        do = f"Step the scheduler at one place: leave out the call at {pace.line}, or the other one (a framework that was given the scheduler steps it by itself)."
    elif passes == {each}:
        why = f"once for each of the {each} micro-batches"
        do = "Step the scheduler only where the optimizer steps."
    elif each == size:
        why = "once for each rank"
        do = "Step the scheduler once for each optimizer step: each rank has a scheduler of its own."
    else:
        return None
    at = "" if len(pace.places) == each else f" ({pace.line})"
    return Found(
        cause="scheduler-steps-too-often",
        headline=f"The scheduler steps {each} times for each optimizer step{at}, {why}: the learning rate runs through its schedule {each} × too fast.",
        line=pace.line,
        pattern="fix-learning-rate",
        do=do,
        why="The schedule counts optimizer steps.",
        title="Scheduler steps too often",
        explains=_EXPLAINS,
    )  # fmt: skip


def _prepared(pace: Pace, evidence: Evidence) -> Found | None:
    """Accelerate steps a prepared scheduler once for each process: as on one device for steps, but not for epochs."""
    size = evidence.size
    between = {count for count in pace.counts if count}
    if pace.by != "accelerate" or size < 2 or between != {size} or pace.counts.count(0) < len(pace.counts) / 2:
        return None
    name = str(pace.told["line"]).rpartition(":")[0]
    if any("num_processes" in line for line in evidence.lines(name)):
        return None  # whoever made it counted the processes
    return Found(
        cause="scheduler-steps-too-often",
        headline=f"The {pace.told['cls']} ({pace.told['line']}) steps {size} times at each epoch's end ({pace.line}): it was given to `accelerator.prepare`, which steps it once for each process, "
        f"so the learning rate runs through its schedule {size} × too fast.",
        line=str(pace.told["line"]),
        pattern="fix-learning-rate",
        do=f"Make its lengths `accelerator.num_processes` ({size}) times longer, or leave it out of `prepare`.",
        why="With several processes an epoch has fewer steps, which Accelerate makes up for by stepping more often; epochs stay as many as they are.",
        title="Scheduler steps too often",
        confidence=Confidence.LIKELY,
        explains=_EXPLAINS,
    )  # fmt: skip


def _fits(pace: Pace) -> bool:
    """It ends where the training ends: whoever made it counted its own steps."""
    return bool(pace.horizon) and 0.9 * pace.horizon <= pace.at <= 1.05 * pace.horizon + 1


def _too_short(pace: Pace) -> Found | None:
    """The end of the schedule was passed while training goes on."""
    if not pace.each or not pace.horizon or pace.at <= pace.horizon * _ROUNDING + pace.each:
        return None
    return Found(
        cause="schedule-ends-too-early",
        headline=f"The {pace.told['cls']} made for {pace.horizon} steps ({pace.told['line']}) has made {pace.at}: it steps {pace.each} × for each "
        f"optimizer step ({pace.line}), and its end was passed at step {pace.horizon // pace.each}.",
        line=pace.line,
        pattern="fix-learning-rate",
        do="Step it once for each epoch if its length counts epochs; else give it as many steps as it will be called: "
        "optimizer steps of one rank, times the number of ranks where the framework steps it that often (Accelerate).",
        why="Behind its end the rate stays at zero or rises again.",
        title="Schedule ends too early",
        confidence=Confidence.LIKELY,
        explains=_EXPLAINS,
    )  # fmt: skip


def _at_zero(pace: Pace, size: int) -> Found | None:
    """Its end is not told, but shows: the rate is zero for a good part of the training."""
    rates = [step.lr[0] for step in pace.steps if step.lr and step.lr[0] is not None]
    moving = next((place for place in range(len(rates), 0, -1) if rates[place - 1] > _NOTHING), 0)
    idle = len(rates) - moving
    if not pace.each or not moving or idle < max(_FEWEST, _IDLE * len(rates)):
        return None
    prepared = pace.by == "accelerate" and pace.each == size
    how = (
        f"it was given to `accelerator.prepare`, which steps it once for each of the {size} processes ({pace.line})"
        if prepared
        else f"it steps {pace.each} × for each optimizer step ({pace.line})"
    )
    return Found(
        cause="schedule-ends-too-early",
        headline=f"The learning rate is zero from step {moving + 1} on, for {idle} of {len(rates)} steps: the {pace.told['cls']} ({pace.told['line']}) has come to its end; {how}.",
        line=str(pace.told["line"]),
        pattern="fix-learning-rate",
        do=f"Make its length `accelerator.num_processes` ({size}) times the steps of one process, or leave it out of `prepare`."
        if prepared
        else "Give it as many steps as it will be called, or step it once for each optimizer step.",
        why="With a rate of zero nothing is learned from then on.",
        title="Schedule ends too early",
        confidence=Confidence.LIKELY,
        explains=_EXPLAINS,
    )  # fmt: skip


def _too_long(pace: Pace, one: RankEvidence, size: int) -> Found | None:
    """Its length is the number of batches of the undivided data: exactly, so that it cannot be chance."""
    if pace.each != 1 or not pace.horizon or size < 2 or one.all("enough"):
        return None
    epochs = {loader["l"]: sum(1 for at in one.all("epoch") if at["l"] == loader["l"]) for loader in one.all("loader")}
    for loader in one.all("loader"):
        if loader["told"].get("num_replicas") != size or not loader["length"] or not loader["batch_size"]:
            continue
        batches = {math.ceil(loader["length"] / loader["batch_size"]), loader["length"] // loader["batch_size"]}
        taken = pace.at / max(1, epochs[loader["l"]])
        if pace.horizon in {count * epochs[loader["l"]] for count in batches} and taken * size <= max(batches) + size:
            return Found(
                cause="schedule-not-divided-by-ranks",
                headline=f"The {pace.told['cls']} was made for {pace.horizon} steps ({pace.told['line']}), the batches of all ranks together, but each rank makes "
                f"{pace.at}: training ends at 1/{size} of the schedule.",
                line=str(pace.told["line"]),
                pattern="fix-learning-rate",
                do="Count the steps of one rank: `len(loader) * epochs` of the loader with the DistributedSampler.",
                why="The rate never comes down as it was meant to.",
                title="Schedule not divided by the ranks",
            )  # fmt: skip
    return None


def _collapses(pace: Pace, one: RankEvidence) -> Found | None:
    """A decay for epochs that is stepped for batches."""
    if pace.each != 1 or pace.told["cls"] not in _DECAYS:
        return None
    begun = sorted({int(at["step"]) for at in one.all("epoch")} - {0})
    length = begun[0] if begun else len(pace.steps)
    within = [step for step in pace.steps if step.step < length]
    if len(within) < _FEWEST or not within[0].lr or not within[0].lr[0] or within[-1].lr[0] is None:
        return None
    first, last = within[0].lr[0], within[-1].lr[0]
    if last > first * _COLLAPSED:
        return None
    return Found(
        cause="learning-rate-collapses",
        headline=f"The learning rate falls from {first:g} to {last:.3g} within the first {len(within)} steps: the {pace.told['cls']} ({pace.told['line']}) "
        f"steps for each batch ({pace.line}).",
        line=pace.line,
        pattern="fix-learning-rate",
        do="Step this scheduler once for each epoch, outside of the loop over batches.",
        why="With a rate near zero the weights hardly change from then on.",
        title="Learning rate collapses within an epoch",
        confidence=Confidence.LIKELY,
    )  # fmt: skip
