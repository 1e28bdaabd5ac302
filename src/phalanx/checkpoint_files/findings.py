"""Facts of a checkpoint as findings: the rule that asks for a fact gives texts, symptom and fixes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from phalanx.knowledge import Rule, load_rules
from phalanx.knowledge.figures import fix_share
from phalanx.knowledge.rule import FixSpec
from phalanx.model import Basis, Confidence, Evidence, Finding, Fix, Role, Stage
from phalanx.model.fact import Fact
from phalanx.model.facts import sentence_of
from phalanx.model.template import fill

_WHY = "Found in the files of the checkpoint, before it is loaded."


@cache
def _rules() -> Mapping[str, Rule]:
    return {
        spec.fact.id: rule
        for rule in load_rules()
        for spec in (rule.evidence if rule.is_active else ())
        if spec.role is Role.ROOT and spec.fact is not None and spec.fact.id.startswith("checkpoint.")
    }


def findings_of(facts: Iterable[Fact], path: Path) -> list[Finding]:
    """Errors before warnings; within them as the facts come."""
    found = [_finding(fact, _rules()[fact.id], path) for fact in facts]
    return sorted(found, key=lambda finding: finding.severity == "warning")


def _finding(fact: Fact, rule: Rule, path: Path) -> Finding:
    values = {**fact.texts(), "path": str(path)}
    file = fact.fields.get("file")
    shown = str(path / file) if isinstance(file, str) and path.is_dir() else str(path)
    rank = fact.ranks[0] if len(fact.ranks) == 1 else None
    return Finding(
        symptom=rule.symptom,
        stage=Stage.of_symptom(rule.symptom),
        cause=rule.cause,
        rule=rule.code,
        confidence=Confidence(rule.confidence),
        distributed_specific=bool(rule.distributed),
        distributed_why=_WHY,
        culprit_ranks=(),
        victim_ranks=(),
        affected_ranks=fact.ranks,
        title=fill(rule.title, values),
        summary=fill(rule.summary, values),
        fixes=tuple(_fixes(rule, values)),
        evidence=(Evidence(rank, shown, 0, sentence_of(fact), Role.ROOT),),
        severity="error" if rule.fatal else "warning",
    )


def _fixes(rule: Rule, values: Mapping[str, str]) -> list[Fix]:
    """Fixes that the fact's own fields choose go first; those for another case are left out."""
    chosen = [spec for spec in rule.fixes if spec.given and values.get(spec.given)]
    rest = [spec for spec in rule.fixes if spec not in chosen and not spec.only]
    return [_fix(spec, rule.symptom, values, Basis.EVIDENCE) for spec in chosen] + [
        _fix(spec, rule.symptom, values, Basis.RULE) for spec in rest
    ]


def _fix(spec: FixSpec, symptom: str, values: Mapping[str, str], basis: Basis) -> Fix:
    return Fix(
        pattern=spec.pattern,
        title=fill(spec.title, values),
        do=fill(spec.do, values),
        why=fill(spec.why, values),
        confirm=fill(spec.confirm, values),
        safety=spec.safety,
        study_share=round(fix_share(symptom, spec.pattern), 3),
        basis=basis,
    )
