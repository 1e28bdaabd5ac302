"""Turns readings into findings: the rule whose expression matches the sentence gives the texts, the symptom and the fixes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from phalanx.check.reading import Reading
from phalanx.check.witness import Witness, name_all
from phalanx.knowledge import Rule, load_rules
from phalanx.knowledge.figures import distributed_share, fix_share
from phalanx.knowledge.rule import FixSpec
from phalanx.model import Confidence, Evidence, Finding, Fix, Role, Stage
from phalanx.model.template import fill

START = "check: "
_SPOKEN = "phalanx check"  # in the place of a file


@cache
def rules_of_checks() -> tuple[Rule, ...]:
    """The rules that explain what a probe says, most important first."""
    found = [rule for rule in load_rules() if rule.is_active and any(True for _ in _expressions(rule))]
    return tuple(sorted(found, key=lambda rule: -rule.priority))


def _expressions(rule: Rule) -> Iterable[re.Pattern[str]]:
    for spec in rule.evidence:
        if spec.role is Role.ROOT and spec.line is not None and spec.line.pattern.startswith(START):
            yield re.compile(spec.line.pattern)


def explain(reading: Reading) -> tuple[Rule, dict[str, str]] | None:
    """The rule that a sentence belongs to, and what its expression captured; None if there is none."""
    for rule in rules_of_checks():
        for expression in _expressions(rule):
            if (match := expression.search(reading.text)) is not None:
                captured = {name: value for name, value in match.groupdict().items() if value is not None}
                return rule, captured
    return None


def findings_of(readings: Iterable[Reading], witnesses: Mapping[str, Witness]) -> list[Finding]:
    """Best first: what the rules hold for more important, then what is surer; the same thing said twice is said once."""
    found: dict[str, tuple[int, Finding]] = {}
    for reading in merged(readings):
        explained = explain(reading)
        if explained is None:  # no rule is better than no word: a test sees to it that there is one
            priority, finding = 0, _unexplained(reading, witnesses)
        else:
            rule, captured = explained
            priority, finding = rule.priority, _finding(reading, rule, captured, witnesses)
        kept = found.get(reading.text)
        found[reading.text] = (priority, _joined(kept[1], finding) if kept else finding)
    ordered = sorted(found.values(), key=lambda pair: (-pair[1].confidence.weight, -pair[0]))
    return [finding for _, finding in ordered]


def merged(readings: Iterable[Reading]) -> list[Reading]:
    """The same said of several parties, one by one, as one sentence about all of them."""
    groups: dict[str, list[Reading]] = {}
    for reading in readings:
        key = _without(reading.text, reading.accused[0]) if len(reading.accused) == 1 else reading.text
        groups.setdefault(key, []).append(reading)
    return [_as_one(key, group) if len(group) > 1 else group[0] for key, group in groups.items()]


def _without(text: str, label: str) -> str:
    """The text with a gap for the party; only where its name stands as a word, not in an address or a URL."""
    return re.sub(rf"(?<![\w./-]){re.escape(label)}(?![\w-]|:\d)", "\0", text)


def _as_one(key: str, group: Sequence[Reading]) -> Reading:
    accused = tuple(dict.fromkeys(label for reading in group for label in reading.accused))
    first = group[0]
    everyone = name_all(accused)
    values = {name: everyone if value in accused else value for name, value in first.values.items()}
    harmed = tuple(dict.fromkeys(label for reading in group for label in reading.harmed))
    said = tuple(item for reading in group for item in reading.said)
    return Reading(key.replace("\0", everyone), accused, harmed, values, said)


def _unexplained(reading: Reading, witnesses: Mapping[str, Witness]) -> Finding:
    text = reading.text.removeprefix(START)
    symptom = "comm.setup-failure"
    return Finding(
        symptom=symptom,
        stage=Stage.of_symptom(symptom),
        cause="unexplained-reading",
        rule=None,
        confidence=Confidence.POSSIBLE,
        distributed_specific=True,
        distributed_why="Found before the job was started, by comparing hosts and ranks.",
        culprit_ranks=(),
        victim_ranks=(),
        affected_ranks=_ranks(reading.accused, witnesses),
        title="Something is not as it should be",
        summary=text[:1].upper() + text[1:] + ".",
        fixes=(),
        evidence=_evidence(reading, witnesses),
        culprit_hosts=_hosts(reading.accused, witnesses),
    )


def _joined(first: Finding, second: Finding) -> Finding:
    """The same sentence of two parties."""
    return replace(
        first,
        culprit_ranks=tuple(sorted({*first.culprit_ranks, *second.culprit_ranks})),
        victim_ranks=tuple(sorted({*first.victim_ranks, *second.victim_ranks})),
        affected_ranks=tuple(sorted({*first.affected_ranks, *second.affected_ranks})),
        culprit_hosts=tuple(dict.fromkeys((*first.culprit_hosts, *second.culprit_hosts))),
        victim_hosts=tuple(dict.fromkeys((*first.victim_hosts, *second.victim_hosts))),
        evidence=tuple(dict.fromkeys((*first.evidence, *second.evidence))),
    )


def _finding(reading: Reading, rule: Rule, captured: Mapping[str, str], witnesses: Mapping[str, Witness]) -> Finding:
    values = {**reading.values, **captured}
    accused = _ranks(reading.accused, witnesses)
    harmed = tuple(rank for rank in _ranks(reading.harmed, witnesses) if rank not in accused)
    everybody = len(reading.accused) >= len(witnesses) > 1  # if all do it, nobody stands out
    return Finding(
        symptom=rule.symptom,
        stage=Stage.of_symptom(rule.symptom),
        cause=rule.cause,
        rule=rule.code,
        confidence=Confidence(reading.values.get("confidence", rule.confidence)),
        distributed_specific=bool(rule.distributed)
        if rule.distributed is not None
        else distributed_share(rule.symptom) > 0.5,
        distributed_why="Found before the job was started, by comparing hosts and ranks."
        if rule.distributed is not False
        else "It would also stop a job of one process.",
        culprit_ranks=() if everybody else accused,
        victim_ranks=harmed,
        affected_ranks=tuple(sorted({*accused, *harmed})),
        title=fill(rule.title, values),
        summary=fill(rule.summary, values),
        fixes=tuple(_fix(spec, rule.symptom, values) for spec in _ordered(rule.fixes, reading.text)),
        evidence=_evidence(reading, witnesses),
        culprit_hosts=_hosts(reading.accused, witnesses),
        victim_hosts=_hosts(reading.harmed, witnesses),
    )


def _ordered(specs: Sequence[FixSpec], text: str) -> list[FixSpec]:
    pointed = [spec for spec in specs if spec.when is not None and spec.when.search(text)]
    return pointed + [spec for spec in specs if spec not in pointed]


def _fix(spec: FixSpec, symptom: str, values: Mapping[str, str]) -> Fix:
    return Fix(
        pattern=spec.pattern,
        title=fill(spec.title, values),
        do=fill(spec.do, values),
        why=fill(spec.why, values),
        confirm=fill(spec.confirm, values),
        safety=spec.safety,
        study_share=round(fix_share(symptom, spec.pattern), 3),
        # Values come from the hosts' environments: in a command they are quoted.
        shell=fill(spec.shell, {name: shlex.quote(value) for name, value in values.items() if value})
        if spec.shell
        else "",
    )


def _evidence(reading: Reading, witnesses: Mapping[str, Witness]) -> tuple[Evidence, ...]:
    concerned = reading.accused or reading.harmed
    first = Evidence(
        _only_rank(concerned, witnesses),
        _SPOKEN,
        0,
        reading.text.removeprefix(START),
        Role.ROOT,
        ", ".join(_hosts(concerned, witnesses)) or None,
    )
    further = [
        Evidence(
            _only_rank((label,), witnesses), f"{_SPOKEN} on {label}", 0, text, Role.SUPPORTS, _host(label, witnesses)
        )
        for label, text in reading.said
    ]
    return (first, *further)


def _ranks(labels: Iterable[str], witnesses: Mapping[str, Witness]) -> tuple[int, ...]:
    return tuple(sorted({rank for label in labels if label in witnesses for rank in witnesses[label].ranks}))


def _hosts(labels: Iterable[str], witnesses: Mapping[str, Witness]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_host(label, witnesses) for label in labels))


def _host(label: str, witnesses: Mapping[str, Witness]) -> str:
    return witnesses[label].host if label in witnesses else label


def _only_rank(labels: Sequence[str], witnesses: Mapping[str, Witness]) -> int | None:
    ranks = _ranks(labels, witnesses)
    return ranks[0] if len(ranks) == 1 else None
