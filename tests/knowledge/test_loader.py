"""Rule files: what is accepted, and that what is refused is refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.knowledge import RuleError
from phalanx.knowledge.loader import parse_rule
from phalanx.knowledge.rule import Blame, Claims
from phalanx.model import Role, Stage

GOOD = """+++
code = "TST001"
symptom = "perf.hang"
cause = "test-fault"
status = "stable"
blame = "silent"
claims = "symptom"
[by_stage]
comm = "comm.hang-timeout"
[[evidence]]
role = "root"
line = 'something very (?P<what>wrong)'
[[fix]]
pattern = "fix-behavior-logic"
title = "Mend it"
do = "Do it."
why = "Because."
+++
# A test fault
{victims|Some} met {what}.
## Meaning
m
## Impact
i
## Confirm
c
## References
r
## Tests
### fires: it
expects: culprits=2; victims=0,1
~~~log rank0.log
something very wrong
~~~
~~~log rank1.log
something very wrong
~~~
> Some message
### silent: not it
~~~log
something quite right
~~~
"""
PATH = Path("rules/perf.hang/test-fault.md")


def test_reads_every_part() -> None:
    rule = parse_rule(GOOD, PATH)
    assert (rule.code, rule.blame, rule.claims) == ("TST001", Blame.SILENT, Claims.SYMPTOM)
    assert rule.symptom_at(Stage.COMM) == "comm.hang-timeout"
    assert rule.symptom_at(Stage.TRAIN) == rule.symptom_at(None) == "perf.hang"
    assert rule.evidence[0].role is Role.ROOT
    assert rule.evidence[0].literals == {"something very wrong"}
    assert rule.title == "A test fault"
    assert rule.summary == "{victims|Some} met {what}."
    fires, silent = rule.cases
    assert fires.files == (("rank0.log", "something very wrong\n"), ("rank1.log", "something very wrong\n"))
    assert fires.message == "Some message"
    assert dict(fires.expects) == {"culprits": "2", "victims": "0,1"}
    assert not silent.fires


def test_a_removed_rule_needs_its_code_and_what_it_was() -> None:
    head = GOOD[: GOOD.index("blame = ")].replace('"stable"', '"removed"')
    rule = parse_rule(f"{head}+++\n# A test fault\nIt was wrong.\n", PATH)
    assert (rule.code, rule.is_active, rule.summary) == ("TST001", False, "It was wrong.")
    assert not rule.evidence


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('symptom = "perf.hang"', 'symptom = "perf.hangs"', "unknown symptom"),
        ("line = 'something", "prose = 'something", "unknown evidence key: prose"),
        ('"fix-behavior-logic"', '"fix-it"', "unknown fix pattern"),
        ("## Impact\ni\n", "", "lacks the section ## Impact"),
        ("### silent: not it\n~~~log\nsomething quite right\n~~~\n", "", "one `### silent:`"),
        ('code = "TST001"', 'code = "T1"', "three capitals"),
        ('status = "stable"', 'status = "fresh"', "status must be"),
        ('cause = "test-fault"', 'cause = "Test fault"', "kebab case"),
        ('blame = "silent"', 'blame = "named"', "needs a fact"),
        ('blame = "silent"', 'blaim = "silent"', "unknown key: blaim"),
        ("something very (?P<what>wrong)'", "[unclosed'", "unterminated"),
        ("something very (?P<what>wrong)'", r"\d+'", "more specific"),
        ('role = "root"', 'role = "supports"', 'role = "root"'),
        ("expects: ", "expect: ", "nobody reads"),
        ("+++\ncode", "---\ncode", "front matter"),
        ("code = ", "code : ", "not TOML"),
        ('cause = "test-fault"\n', "", "lacks 'cause'"),
    ],
)
def test_refuses_with_a_reason(old: str, new: str, reason: str) -> None:
    assert old in GOOD
    with pytest.raises(RuleError, match=reason) as caught:
        parse_rule(GOOD.replace(old, new, 1), PATH)
    assert str(PATH) in str(caught.value)


def test_loading_runs_no_code() -> None:
    hostile = GOOD.replace('why = "Because."', "why = \"{__import__('os').abort()}\"")
    assert parse_rule(hostile, PATH).fixes[0].why.startswith("{__import__")
