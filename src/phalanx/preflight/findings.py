"""Turns what the probes established into findings: the rule that asks for the fact gives the texts, the symptom and the fixes."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from phalanx.knowledge import Rule, load_rules
from phalanx.knowledge.figures import distributed_share, fix_share
from phalanx.knowledge.rule import FixSpec
from phalanx.model import Confidence, Evidence, Finding, Fix, Role, Stage
from phalanx.model.fact import Fact
from phalanx.model.facts import sentence_of
from phalanx.model.template import fill
from phalanx.preflight.check_fact import CheckFact
from phalanx.preflight.host_facts import HostFacts

_SPOKEN = "phalanx check"  # in the place of a file


@cache
def rules_of_checks() -> dict[str, tuple[Rule, ...]]:
    """The rules that explain what a probe establishes, by the id of the fact, most important first."""
    found: dict[str, list[Rule]] = {}
    for rule in load_rules():
        for spec in rule.evidence if rule.is_active else ():
            if spec.role is Role.ROOT and spec.fact is not None and rule not in found.setdefault(spec.fact.id, []):
                found[spec.fact.id].append(rule)
    return {fact_id: tuple(sorted(rules, key=lambda rule: -rule.priority)) for fact_id, rules in found.items()}


def explain(fact: Fact) -> Rule | None:
    """The rule that a fact belongs to; None if there is none."""
    for rule in rules_of_checks().get(fact.id, ()):
        if any(spec.fact is not None and spec.fact.matches(fact) for spec in rule.evidence):
            return rule
    return None


def findings_of(facts: Iterable[CheckFact], all_facts: Mapping[str, HostFacts]) -> list[Finding]:
    """Best first: what is surer, then what the rules hold for more important; the same thing said twice is said once."""
    found: list[tuple[int, Finding]] = []
    for one in merged(facts):
        rule = explain(one.fact)
        if rule is None:  # no rule is better than no word: a test sees to it that there is one
            found.append((0, _unexplained(one, all_facts)))
        else:
            found.append((rule.priority, _finding(one, rule, all_facts)))
    ordered = sorted(found, key=lambda pair: (pair[1].severity == "warning", -pair[1].confidence.weight, -pair[0]))
    return [finding for _, finding in ordered]


def merged(facts: Iterable[CheckFact]) -> list[CheckFact]:
    """The same established of several targets, one by one, as one fact about all of them."""
    groups: dict[str, list[CheckFact]] = {}
    for one in facts:
        shared = sorted((name, value) for name, value in one.fact.fields.items() if name not in one.own)
        groups.setdefault(f"{one.fact.id} {shared}", []).append(one)
    return [_as_one(group) if len(group) > 1 else group[0] for group in groups.values()]


def _as_one(group: Sequence[CheckFact]) -> CheckFact:
    first = group[0]
    accused = tuple(dict.fromkeys(label for one in group for label in one.accused))
    harmed = tuple(dict.fromkeys(label for one in group for label in one.harmed))
    evidence = tuple(dict.fromkeys(item for one in group for item in one.evidence))
    fields = {  # what differs from host to host is said of none
        name: value
        for name, value in first.fact.fields.items()
        if all(one.fact.fields.get(name) == value for one in group)
    }
    return replace(first, fact=replace(first.fact, hosts=accused, fields=fields), harmed=harmed, evidence=evidence)


def _unexplained(one: CheckFact, all_facts: Mapping[str, HostFacts]) -> Finding:
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
        affected_ranks=_ranks(one.accused, all_facts),
        title="Something is not as it should be",
        summary=f"{sentence_of(one.fact)}.",
        fixes=(),
        evidence=_evidence(one, all_facts),
        culprit_hosts=_hosts(one.accused, all_facts),
    )


def _finding(one: CheckFact, rule: Rule, all_facts: Mapping[str, HostFacts]) -> Finding:
    values = one.fact.texts()
    accused = _ranks(one.accused, all_facts)
    harmed = tuple(rank for rank in _ranks(one.harmed, all_facts) if rank not in accused)
    everybody = len(one.accused) >= len(all_facts) > 1  # if all do it, nobody stands out
    return Finding(
        symptom=rule.symptom,
        stage=Stage.of_symptom(rule.symptom),
        cause=rule.cause,
        rule=rule.code,
        confidence=Confidence(one.confidence or rule.confidence),
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
        fixes=tuple(_fix(spec, rule.symptom, values) for spec in rule.fixes),
        evidence=_evidence(one, all_facts),
        culprit_hosts=_hosts(one.accused, all_facts),
        victim_hosts=_hosts(one.harmed, all_facts),
        severity="warning" if one.by_luck or not rule.fatal else "error",
    )


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
        if spec.shell and not values.get("variable", "").startswith("--")  # an option cannot be exported
        else "",
    )


def _evidence(one: CheckFact, all_facts: Mapping[str, HostFacts]) -> tuple[Evidence, ...]:
    concerned = one.accused or one.harmed
    first = Evidence(
        _only_rank(concerned, all_facts),
        _SPOKEN,
        0,
        sentence_of(one.fact),
        Role.ROOT,
        ", ".join(_hosts(concerned, all_facts)) or None,
    )
    further = [
        Evidence(
            _only_rank((label,), all_facts), f"{_SPOKEN} on {label}", 0, text, Role.SUPPORTS, _host(label, all_facts)
        )
        for label, text in one.evidence
    ]
    return (first, *further)


def _ranks(labels: Iterable[str], all_facts: Mapping[str, HostFacts]) -> tuple[int, ...]:
    return tuple(sorted({rank for label in labels if label in all_facts for rank in all_facts[label].ranks}))


def _hosts(labels: Iterable[str], all_facts: Mapping[str, HostFacts]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_host(label, all_facts) for label in labels))


def _host(label: str, all_facts: Mapping[str, HostFacts]) -> str:
    return all_facts[label].host if label in all_facts else label


def _only_rank(labels: Sequence[str], all_facts: Mapping[str, HostFacts]) -> int | None:
    ranks = _ranks(labels, all_facts)
    return ranks[0] if len(ranks) == 1 else None
