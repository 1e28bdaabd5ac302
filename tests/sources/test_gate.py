"""Keys stand for every literal, and what is found through them is what is found without."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.diagnosis.match import patterns_of
from phalanx.diagnosis.world import SIGNS
from phalanx.knowledge import load_rules
from phalanx.sources import gate
from phalanx.sources.collect import Collector
from phalanx.sources.gate import GatedNeedles, choose_keys
from phalanx.sources.scanner import Needle, NeedleSet

RULES = load_rules()
NEEDLES = Collector(patterns_of(RULES), SIGNS).needles
CASES = [line for rule in RULES for case in rule.cases for _, text in case.files for line in text.splitlines()]
HEALTHY = "2024-05-01 10:00:00 - INFO - iteration {:>8}/ 500000 | learning rate: 1E-4 | lm loss: 2.5 | number of nan iterations: 0 |"


def log(seed: int, lines: int, share: float) -> bytes:
    """A healthy log with a share of lines that rules ask for, or nearly."""
    generator = random.Random(seed)
    chosen = [
        generator.choice(CASES) if generator.random() < share else HEALTHY.format(generator.randrange(10**6))
        for _ in range(lines)
    ]
    return "\n".join(chosen).encode()


@pytest.fixture
def gated(monkeypatch: pytest.MonkeyPatch) -> GatedNeedles:
    """Gated needles that have learned from a healthy log already."""
    monkeypatch.setattr(gate, "_LEARN_AFTER", 100_000)
    made = GatedNeedles(NEEDLES)
    while not made.is_learnt:
        made.scan(log(1, 400, 0), [])
    return made


def test_every_literal_of_the_rules_holds_a_key() -> None:
    literals = {needle.text.encode() for needle in NEEDLES.needles if not needle.is_expression}
    keys = choose_keys(literals, log(2, 300, 0.01))
    assert len(keys) < len(literals) / 2
    assert all(any(key in literal for key in keys) for literal in literals)


@settings(max_examples=100, deadline=None)
@given(st.sets(st.binary(min_size=1, max_size=30), max_size=20), st.binary(max_size=200))
def test_keys_of_any_literals(literals: set[bytes], sample: bytes) -> None:
    keys = choose_keys(literals, sample)
    assert all(any(key in literal for key in keys) for literal in literals)


def test_keys_are_rare_where_that_can_be() -> None:
    assert choose_keys({b"number of devices differ"}, b"number of nan, number of devices: 4") != {b"number o"}
    assert choose_keys({b"number of "}, b"number of nan iterations") == {b"number of "}


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_lost_and_nothing_is_added(gated: GatedNeedles, seed: int) -> None:
    data = log(seed, 3000, 0.01)
    stretches = [(0, 100_000), (data.rfind(b"\n", 0, len(data) - 100_000) + 1, len(data))]
    expected, found = NEEDLES.scan(data, stretches), gated.scan(data, stretches)
    once = {number for number, needle in enumerate(NEEDLES.needles) if needle.once}
    assert gated.is_learnt
    assert expected
    assert {one for one in found if one[1] not in once} == {one for one in expected if one[1] not in once}
    assert {number for _, number in expected} <= {number for _, number in found}


def test_a_log_full_of_matches_is_searched_whole(gated: GatedNeedles) -> None:
    for seed in range(12):  # more often than keys are chosen anew
        data = log(seed, 3000, 0.9)
        assert set(gated.scan(data, [])) == set(NEEDLES.scan(data, []))


def test_endless_lines() -> None:
    needles = NeedleSet([Needle("boom town is on fire"), Needle("KEEP out", ignores_case=True)])
    made = GatedNeedles(needles)
    made._learn(b"quiet " * 100)
    data = (
        b"quiet " * 3000
        + b"boom town is on fire "
        + b"quiet " * 1360
        + b"keep OUT boom town is on fire"
        + b"quiet " * 3000
    )
    assert made.scan(data) == needles.scan(data)
    assert len(made.scan(data)) == 3


def test_literals_that_are_not_ascii() -> None:
    needles = NeedleSet([Needle("l’erreur était fatale")])
    made = GatedNeedles(needles)
    made._learn("l’erreur était légère".encode())
    data = ("rien\n" * 50 + "ici l’erreur était fatale\n" + "rien\n" * 50).encode()
    assert made.scan(data) == needles.scan(data) != []


def test_expressions_are_found_only_where_asked_for() -> None:
    expression = r"worker \d+ of \d+ vanished"
    needles = NeedleSet([Needle(expression, True, literals_by=lambda common: frozenset({" vanished"}))])
    made = GatedNeedles(needles)
    made._learn(b"quiet\n" * 100)
    line = b"worker 3 of 4 vanished\n"
    data = line + b"quiet\n" * 5000 + line
    ends = [match.end() for match in re.finditer(expression.encode(), data)]
    assert [end for end, _ in made.scan(data, [(0, 1000)])] == ends[:1]
    assert [end for end, _ in made.scan(data)] == ends
