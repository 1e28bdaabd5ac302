"""What the diagnosis would say without one of its parts: each detector, blame strategy and rule that took part, one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from phalanx.blame.engine import all_strategies, left_out
from phalanx.diagnosis import judge_observations, read_observations
from phalanx.diagnosis.detectors import Job, detectors
from phalanx.knowledge import Rule
from phalanx.model import Report
from phalanx.sources import Input, Observations


class Part(NamedTuple):
    """Something that can be switched off."""

    kind: str  # detector, strategy or rule
    name: str


def all_parts(rules: Sequence[Rule]) -> list[Part]:
    """Everything that can be switched off, detectors first."""
    return [
        *(Part("detector", name) for name in detectors()),
        *(Part("strategy", one.name) for one in all_strategies()),
        *(Part("rule", rule.code) for rule in rules),
    ]


def reports_without(inputs: Sequence[Input], rules: Sequence[Rule]) -> Iterator[tuple[Part | None, Report]]:
    """The report as it is (part None), then the report without each part that took part. The inputs are read once.

    A part that found nothing here cannot change anything: a rule that did not fire, a detector that emitted no fact, a
    strategy where nobody was accused or suspected.
    """
    seen = read_observations(inputs, rules)
    report, fired = judge_observations(seen, rules)
    yield None, report
    for name, shorter in _without_detectors(seen):
        yield Part("detector", name), judge_observations(shorter, rules)[0]
    if report.findings and len(report.world.all_ranks) > 1:
        for strategy in all_strategies():
            with left_out(strategy.name):
                yield Part("strategy", strategy.name), judge_observations(seen, rules)[0]
    for code in sorted(fired):
        yield Part("rule", code), judge_observations(seen, [rule for rule in rules if rule.code != code])[0]


def _without_detectors(seen: Observations) -> Iterator[tuple[str, Observations]]:
    facts = [event for event in seen.events if event.fact is not None]
    if not facts:
        return
    job = Job(tuple(seen.files), tuple(event for event in seen.events if event.fact is None))
    for name, detect in detectors().items():
        found = [event.fact for event in detect(job)]
        if found:
            yield name, replace(seen, events=[event for event in seen.events if event.fact not in found])
