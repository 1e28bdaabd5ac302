"""Facts are matched by their values: whatever sentence shows them, the verdict is the same."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from phalanx.diagnosis import diagnose_inputs
from phalanx.knowledge import Rule, load_rules
from phalanx.model import Report
from phalanx.model import facts as registry
from phalanx.sources import from_text


@cache
def rules() -> tuple[Rule, ...]:
    return tuple(load_rules())


def by_facts() -> list[Rule]:
    return [rule for rule in rules() if any(spec.fact is not None for spec in rule.evidence)]


def judged(files: tuple[tuple[str, str], ...]) -> list[tuple[object, ...]]:
    inputs = [from_text(name, text) for name, text in files]
    report: Report = diagnose_inputs(inputs, rules())
    return [(one.rule, one.symptom, one.cause, one.culprit_ranks, one.summary) for one in report.findings]


@pytest.mark.parametrize("rule", by_facts(), ids=lambda rule: rule.code)
def test_rewording_changes_no_verdict(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [judged(case.files) for case in rule.cases]
    reworded = {name: replace(one, text=f"reworded {number}") for number, (name, one) in enumerate(registry.fact_types().items())}  # fmt: skip
    monkeypatch.setattr(registry, "fact_types", lambda: reworded)
    assert [judged(case.files) for case in rule.cases] == before


def test_no_expression_of_a_rule_matches_what_phalanx_writes() -> None:
    """A rule asks for a fact by its id; an expression that fits the fact's sentence would make the wording matter."""
    # what `check` says holds names of variables, which programs print, too
    own = [one for one in registry.fact_types().values() if not one.id.startswith("check.")]
    expressions = [(rule.code, spec.line) for rule in rules() for spec in rule.evidence if spec.line is not None]
    matched = [(code, one.id) for one in own for code, line in expressions if line.search(one.text)]
    assert matched == []
