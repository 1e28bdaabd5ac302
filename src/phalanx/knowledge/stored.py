"""Writes loaded rules as JSON and reads them back, so that hundreds of files are not parsed anew for each diagnosis."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from phalanx.knowledge.expression import Expression
from phalanx.knowledge.fact_spec import FactSpec
from phalanx.knowledge.rule import Blame, Case, Claims, EvidenceSpec, FixSpec, Ranks, Rule
from phalanx.model import Confidence, Role, Safety, Stage

_PLAIN = ("code", "symptom", "cause", "status", "title", "summary", "fatal", "distributed", "priority")
_TUPLES = ("frameworks", "libraries", "sources", "headlines")
# A dictionary finds a value's member in a fraction of the time that the class takes, and there are thousands of them.
_ROLES = {one.value: one for one in Role}
_RANKS = {one.value: one for one in Ranks}
_SAFETIES = {one.value: one for one in Safety}


def to_json(rules: Sequence[Rule], problems: Sequence[str]) -> tuple[bytes, bytes]:
    """All there is to know of the rules: what a diagnosis needs, and what people and tests read."""
    bare = {"rules": [_rule_out(rule) for rule in rules], "problems": list(problems)}
    prose = {rule.code: [rule.sections, *map(_case_out, rule.cases)] for rule in rules}
    return json.dumps(bare).encode(), json.dumps(prose).encode()


def from_json(bare: bytes, prose: bytes | None = None) -> tuple[list[Rule], list[str]]:
    """The rules as they were, but for what people read, where that is not given. Raises ValueError, KeyError, TypeError or
    IndexError if this is something else."""
    loaded = json.loads(bare)
    read = json.loads(prose) if prose is not None else None
    rules = [_rule_in(item, [{}] if read is None else read[item["code"]]) for item in loaded["rules"]]
    return rules, list(loaded["problems"])


def _rule_out(rule: Rule) -> dict[str, Any]:
    return {
        **{name: getattr(rule, name) for name in (*_PLAIN, *_TUPLES)},
        "path": str(rule.path),
        "evidence": [_evidence_out(spec) for spec in rule.evidence],
        "fixes": [_fix_out(fix) for fix in rule.fixes],
        "claims": rule.claims.value,
        "blame": rule.blame.value,
        "confidence": rule.confidence.value,
        "overlaps": sorted(rule.overlaps),
        "by_stage": {stage.value: symptom for stage, symptom in rule.by_stage.items()},
    }


def _rule_in(item: dict[str, Any], prose: list[Any]) -> Rule:
    plain: dict[str, Any] = {name: item[name] for name in _PLAIN} | {name: tuple(item[name]) for name in _TUPLES}
    return Rule(
        **plain,
        path=Path(item["path"]),
        evidence=tuple(map(_evidence_in, item["evidence"])),
        fixes=tuple(map(_fix_in, item["fixes"])),
        claims=Claims(item["claims"]),
        blame=Blame(item["blame"]),
        confidence=Confidence(item["confidence"]),
        overlaps=frozenset(item["overlaps"]),
        by_stage={Stage(stage): symptom for stage, symptom in item["by_stage"].items()},
        sections=dict(prose[0]),
        cases=tuple(map(_case_in, prose[1:])),
    )


def _case_out(case: Case) -> list[Any]:
    return [case.name, case.fires, case.files, case.message, case.expects, case.headline]


def _case_in(item: list[Any]) -> Case:
    name, fires, files, message, expects, headline = item
    return Case(name, fires, tuple(map(tuple, files)), message, tuple(map(tuple, expects)), headline)


def _evidence_out(spec: EvidenceSpec) -> list[Any]:
    codes, literals = sorted(spec.exit_codes), sorted(spec.literals)
    fact = None if spec.fact is None else [spec.fact.id, spec.fact.where]
    return [
        spec.role.value,
        spec.ranks.value,
        _expression_out(spec.line),
        codes,
        literals,
        spec.is_common,
        fact,
        _expression_out(spec.outside),
    ]


def _evidence_in(item: list[Any]) -> EvidenceSpec:
    role, ranks, line, exit_codes, literals, is_common, fact, outside = item
    return EvidenceSpec(
        _ROLES[role],
        _RANKS[ranks],
        _expression_in(line),
        frozenset(exit_codes),
        frozenset(literals),
        is_common,
        None if fact is None else FactSpec(fact[0], tuple((name, tuple(allowed)) for name, allowed in fact[1])),
        _expression_in(outside),
    )


def _fix_out(fix: FixSpec) -> list[Any]:
    return [
        fix.pattern,
        fix.title,
        fix.do,
        fix.why,
        fix.confirm,
        fix.safety.value,
        _expression_out(fix.when),
        fix.only,
        fix.given,
        fix.shell,
    ]


def _fix_in(item: list[Any]) -> FixSpec:
    pattern, title, do, why, confirm, safety, when, only, given, shell = item
    return FixSpec(pattern, title, do, why, confirm, _SAFETIES[safety], _expression_in(when), only, given, shell)


def _expression_out(expression: Expression | None) -> list[Any] | None:
    return None if expression is None else [expression.pattern, int(expression.flags)]


def _expression_in(item: list[Any] | None) -> Expression | None:
    return None if item is None else Expression(*item)


def shape() -> str:
    """The fields that are written: what was stored by a release with others is not read."""
    return ";".join(",".join(field.name for field in fields(kind)) for kind in (Rule, EvidenceSpec, FixSpec, Case))
