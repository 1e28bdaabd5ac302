"""Sentences of probes and the rules that explain them."""

from __future__ import annotations

import pytest

from phalanx.check.findings import explain, findings_of, merged, rules_of_checks
from phalanx.check.reading import Reading
from phalanx.knowledge import Rule
from tests.check.made import witness


@pytest.mark.parametrize("rule", rules_of_checks(), ids=lambda rule: rule.code)
def test_every_rule_explains_its_own_sentences_and_no_others(rule: Rule) -> None:
    for case in rule.cases:
        for _, text in case.files:
            found = explain(Reading(text.strip()))
            if case.fires:
                assert found is not None
                assert found[0].code == rule.code
            else:
                assert found is None or found[0].code != rule.code


def test_what_is_said_of_many_hosts_is_one_finding() -> None:
    said = [
        Reading(f"check: {name} may have 64 files open (ulimit -n); a job of 3 ranks can need 1024", accused=(name,))
        for name in ("h0", "h1", "h2")
    ]
    (finding,) = findings_of(said, {name: witness(name, {"RANK": name[1]}) for name in ("h0", "h1", "h2", "h3")})
    assert finding.culprit_hosts == ("h0", "h1", "h2")
    assert finding.culprit_ranks == (0, 1, 2)
    assert "h0, h1 and h2" in finding.summary


def test_a_hosts_name_inside_of_another_word_stays() -> None:
    said = [Reading(f"check: x=eth0 on {name}", accused=(name,)) for name in ("h0", "h1")]
    assert [one.text for one in merged(said)] == ["check: x=eth0 on h0 and h1"]


def test_if_all_do_it_no_rank_stands_out() -> None:
    told = {name: witness(name, {"RANK": name[1]}) for name in ("h0", "h1")}
    said = Reading(
        "check: MASTER_ADDR=localhost means every host itself, but the ranks are on 2 hosts (h0 and h1)", ("h0", "h1")
    )
    (finding,) = findings_of([said], told)
    assert finding.culprit_ranks == ()
    assert finding.affected_ranks == (0, 1)
    assert finding.rule == "CHT201"


def test_a_sentence_without_a_rule_is_not_lost() -> None:
    (finding,) = findings_of([Reading("check: something quite new", accused=("h0",))], {"h0": witness("h0")})
    assert finding.summary == "Something quite new."
    assert finding.confidence.value == "possible"
