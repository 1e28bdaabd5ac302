"""Expressions of several rules stand once."""

from collections import Counter

import pytest

from phalanx.knowledge import load_rules
from phalanx.knowledge.literals import check_syntax
from phalanx.knowledge.shared_lines import SHARED_LINES


@pytest.mark.parametrize("name", SHARED_LINES)
def test_each_is_an_expression(name: str) -> None:
    check_syntax(SHARED_LINES[name])


def test_no_expression_stands_in_more_than_two_rules() -> None:
    """Of two rules that tell each other apart by a line, each names it; of three it is time for a name."""
    used = Counter(
        line
        for rule in load_rules()
        for line in {spec.line.pattern for spec in rule.evidence if spec.line is not None}
        if line not in SHARED_LINES.values()
    )
    assert [line for line, count in used.items() if count > 2] == []
