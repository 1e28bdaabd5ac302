"""Jobs of the benchmark's simulator, faults that no rule was written from: who is accused, and that nobody else is."""

from __future__ import annotations

import re

import pytest

from phalanx.knowledge import Rule, load_rules
from phalanx.model.ranks import name_ranks
from tests.made_traces import bench_module

SITUATIONS = bench_module("situations").SITUATIONS
MANY = name_ranks(range(0, 96, 2))


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.__name__)
def test_a_situation(situation: object) -> None:
    judge = bench_module("trace_situations").judge
    for seed in (1, 2):
        right, innocents, report, truth = judge(situation, seed)
        assert right, (seed, truth, report.verdict)
        assert innocents == 0, (seed, truth, report.findings)


def trace_rules() -> list[Rule]:
    texts = [(rule, [one.line.pattern for one in rule.evidence if one.line]) for rule in load_rules()]
    return [rule for rule, expressions in texts if any(text.startswith("collective trace") for text in expressions)]


@pytest.mark.parametrize("rule", trace_rules(), ids=lambda rule: rule.code)
def test_rules_read_sentences_about_many_ranks(rule: Rule) -> None:
    """A sentence names the first dozen of scattered ranks and counts the rest; the rule must still match it."""
    assert "in all)" in MANY
    lines = [line for case in rule.cases if case.fires for _, text in case.files for line in text.splitlines()]
    sentences = [line for line in lines if line.startswith("collective trace: ")]
    assert sentences
    for line in sentences:
        longer = re.sub(r"\branks \d[\d, -]*\d(?= )", lambda _: MANY, line)
        assert any(one.line.search(longer) for one in rule.evidence if one.line), longer
