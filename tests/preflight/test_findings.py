"""What probes establish, and the rules that explain it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from phalanx.knowledge import Rule
from phalanx.model import facts as registry
from phalanx.model.fact import Fact, FactType
from phalanx.model.facts import fact_from_json, fact_types
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.findings import explain, findings_of, merged, rules_of_checks
from tests.preflight.made import host_facts

_BY_CODE = {rule.code: rule for name, rules in rules_of_checks().items() if name.startswith("check.") for rule in rules}
RULES = [_BY_CODE[code] for code in sorted(_BY_CODE)]


def facts_in(text: str) -> list[Fact]:
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return [fact for line in lines if (fact := fact_from_json(json.loads(line))) is not None]


def all_facts() -> list[Fact]:
    """The facts of all cases of all rules."""
    return [fact for rule in RULES for case in rule.cases for _, text in case.files for fact in facts_in(text)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_explains_its_own_facts_and_no_others(rule: Rule) -> None:
    for case in rule.cases:
        codes = {found.code for _, text in case.files for fact in facts_in(text) if (found := explain(fact))}
        assert (rule.code in codes) == case.fires


def test_every_fact_of_the_check_has_a_rule_and_every_text_its_fields() -> None:
    declared = {name for name in fact_types() if name.startswith("check.")}
    assert declared == {name for name in rules_of_checks() if name.startswith("check.")}


def test_rewording_every_sentence_changes_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = {name: host_facts(name) for name in ("h0", "h1", "h2", "node0", "node1", "node2")}
    facts = [CheckFact(fact) for fact in all_facts()]

    def judged() -> list[tuple[object, ...]]:
        return [
            (one.rule, one.cause, one.symptom, one.confidence, one.culprit_hosts, one.summary, one.fixes)
            for one in findings_of(facts, hosts)
        ]

    before = judged()
    assert len(before) > 100
    assert all(rule for rule, *_ in before)
    reworded: dict[str, FactType] = {
        name: replace(one, text=f"Other words {number}") for number, (name, one) in enumerate(fact_types().items())
    }
    monkeypatch.setattr(registry, "fact_types", lambda: reworded)
    assert judged() == before


@pytest.mark.parametrize(
    ("name", "fields", "severity"),
    [
        ("large-packets-vanish", {"ends": "h0 and h1"}, "error"),
        ("incoming-blocked", {"outcome": "silent"}, "error"),
        ("no-host-reaches-another", {}, "error"),
        ("high-ports-blocked", {}, "error"),
        ("path-is-narrow", {}, "warning"),
        ("variable-misspelt", {}, "warning"),
    ],
)
def test_what_stops_a_job_is_no_warning(name: str, fields: dict[str, str], severity: str) -> None:
    (finding,) = findings_of([observe(name, ("h0",), **fields)], {"h0": host_facts("h0")})  # type: ignore[arg-type]
    assert finding.severity == severity


def test_what_is_said_of_many_hosts_is_one_finding() -> None:
    said = [observe("open-files-limit", (name,), soft=64, size=3, needed=1024) for name in ("h0", "h1", "h2")]
    (finding,) = findings_of(said, {name: host_facts(name, {"RANK": name[1]}) for name in ("h0", "h1", "h2", "h3")})
    assert finding.culprit_hosts == ("h0", "h1", "h2")
    assert finding.culprit_ranks == (0, 1, 2)
    assert "h0, h1 and h2" in finding.summary


def test_what_differs_in_a_field_is_not_merged() -> None:
    said = [observe("open-files-limit", ("h0",), soft=64), observe("open-files-limit", ("h1",), soft=32)]
    assert len(merged(said)) == 2


def test_what_is_each_hosts_own_does_not_keep_them_apart() -> None:
    said = [
        observe(
            "own-name-missing",
            (name,),
            error="unknown",
            name=name,
            address=f"10.0.0.{name[1]}",
            own=("name", "address"),
        )
        for name in ("h0", "h1")
    ]
    (one,) = merged(said)
    assert one.accused == ("h0", "h1")
    assert one.fact.fields == {"error": "unknown"}


def test_names_of_hosts_keep_their_letters() -> None:
    facts = [CheckFact(replace(fact, hosts=tuple("alpha" for _ in fact.hosts))) for fact in all_facts()]
    assert not [one.summary for one in findings_of(facts, {"alpha": host_facts("alpha")}) if "Alpha" in one.summary]


def test_if_all_do_it_no_rank_stands_out() -> None:
    told = {name: host_facts(name, {"RANK": name[1]}) for name in ("h0", "h1")}
    fields = {"variable": "MASTER_ADDR", "value": "localhost", "count": 2, "all_hosts": "h0 and h1"}
    (finding,) = findings_of([observe("master-addr-loopback", ("h0", "h1"), **fields)], told)  # type: ignore[arg-type]
    assert finding.culprit_ranks == ()
    assert finding.affected_ranks == (0, 1)
    assert finding.rule == "CHT201"


def test_a_fact_without_a_rule_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phalanx.preflight.findings.explain", lambda _fact: None)
    (finding,) = findings_of([observe("code-missing", ("h0",), path="train.py")], {"h0": host_facts("h0")})
    assert finding.summary == "The path train.py is missing on h0."
    assert finding.confidence.value == "possible"
