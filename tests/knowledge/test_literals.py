"""The literal that every match of an expression must contain."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.knowledge import load_rules
from phalanx.knowledge.literals import required_literals


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("Connection closed by peer", {"Connection closed by peer"}),
        (r"(?:refused|reset) by peer", {" by peer"}),
        (r"No (?P<what>such file) here\d+", {"No such file here"}),
        (r"(?:alpha beta|gamma delta)", {"alpha beta", "gamma delta"}),
        (r"error(?: code)? \d+ in (?:kernel)+", {"kernel"}),
        (r"x*colour", {"colour"}),
        (r"(?i:broadcast)\w* \[missing ranks", {" [missing ranks"}),
        (r"NCCL INFO .*Init START", {"Init START"}),
        # No plain one is rare: they are composed of what stands side by side.
        (r"\d+ timed? ?out\d", {" timeout", " time out", " timedout", " timed out"}),
        (
            r"(?:NPU|XPU) (?:function )?error\d",
            {"NPU error", "NPU function error", "XPU error", "XPU function error"},
        ),
        (r"(?:DistBackendError|DistError): ?", {"DistBackendError:", "DistError:"}),
        (r"[Hh]ost_?file\d", {"Host_file", "Hostfile", "host_file", "hostfile"}),
    ],
)
def test_finds_the_best_literal(pattern: str, expected: set[str]) -> None:
    assert required_literals(pattern) == expected


@pytest.mark.parametrize("pattern", [r"\d+", "abc", r"(?:long word)?", r"(?:long word|x)", r"[a-z]{10}"])
def test_refuses_what_has_none(pattern: str) -> None:
    with pytest.raises(ValueError, match="more specific"):
        required_literals(pattern)


@settings(deadline=None)
@given(st.sampled_from([case for rule in load_rules() for case in rule.cases if case.fires]))
def test_every_match_in_the_rules_cases_contains_one(case: object) -> None:
    lines = [line for _, text in case.files for line in text.splitlines()]  # type: ignore[attr-defined]
    for rule in load_rules():
        for spec in rule.evidence:
            if spec.line is None:
                continue
            fold = str.lower if spec.line.ignores_case else str
            for line in lines:
                match = spec.line.search(line)
                if match:
                    assert any(fold(literal) in fold(match[0]) for literal in spec.literals), (rule.code, match[0])


def test_literals_by_what_the_asker_finds_common() -> None:
    pattern = r"(?:dataset|loader) \d+ (?:vanished|was lost)"
    assert required_literals(pattern, lambda text: text in ("dataset", "loader")) == {"vanished", "was lost"}
    assert required_literals(pattern, lambda text: text in ("vanished", "was lost")) == {"dataset", "loader"}
