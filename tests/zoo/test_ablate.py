"""What the removal of a part changes is counted by split, and a part that changes nothing is named."""

from __future__ import annotations

from dataclasses import replace

from phalanx.zoo.ablate import Outcome, as_json, changed, effects, idle, table
from phalanx.zoo.score import Mark

HIT = Mark(
    name="torch-fault",
    framework="torch",
    split="train",
    healthy=False,
    culprits=(2,),
    wanted="perf.hang",
    got="perf.hang",
    rule="HNG001",
    symptom_first=True,
    symptom_in_three=True,
    cause=True,
    culprit_exact=True,
    innocent_accused=False,
    fix_first=True,
    fix_in_three=True,
    false_alarm=False,
    seconds=None,
    named=None,
    named_by=(),
)
MISS = replace(HIT, symptom_first=False, culprit_exact=False, innocent_accused=True)
RULE, OTHER, DETECTOR = ("rule", "HNG001"), ("rule", "OOM001"), ("detector", "scaling")
OUTCOMES = [
    Outcome(RULE, "torch-fault", "", True, HIT, MISS),
    Outcome(RULE, "unseen-fault", "", True, replace(HIT, split="test"), replace(MISS, split="test")),
    Outcome(RULE, "its own", "HNG001", True),
    Outcome(RULE, "of another", "CHT001", True),
    Outcome(OTHER, "torch-fault", "", False, HIT, HIT),
    Outcome(OTHER, "its own", "OOM001", True),
]


def test_changes_are_counted_by_split_and_held_back_logs_are_not_named() -> None:
    found = effects([DETECTOR, RULE, OTHER], OUTCOMES)
    effect = found[RULE]
    assert effect.by_split["train"] == {"symptom_first": -1, "cause": 0, "culprit_exact": -1, "fix_first": 0, "innocent_accused": 1, "false_alarm": 0}  # fmt: skip
    assert (effect.logs, effect.held_back, effect.cases, effect.own_cases) == (["torch-fault"], 1, ["CHT001: of another"], 1)  # fmt: skip
    assert "unseen-fault" not in str(as_json(found)["parts"])
    assert changed(found) == ["rule HNG001: torch-fault, CHT001: of another"]


def test_a_part_that_only_its_own_cases_need_is_idle() -> None:
    found = effects([DETECTOR, RULE, OTHER], OUTCOMES)
    assert idle(found) == {"detector": ["scaling"], "strategy": [], "rule": ["OOM001"]}
    (row,) = table(found).rows
    assert row[:7] == ("rule HNG001", "-1", "", "-1", "", "+1", "")
    assert row[-2:] == ("2", "1")
