"""What a group found about the network survives the way through a launcher's output."""

from __future__ import annotations

import json

import pytest

from phalanx.model import Unchecked
from phalanx.preflight.check_fact import observe
from phalanx.preflight.group_result import GroupResult, group_from_json

FACT = observe("rank-did-not-come-to-the-check", ("node1",), size=2)
RESULT = GroupResult(
    {"node1": ("node1", 0)}, (FACT,), (Unchecked("large messages", "time", essential=True),), frozenset({"store"}), 4, 2
)


def test_it_reads_as_it_was_written() -> None:
    assert group_from_json(json.loads(json.dumps(RESULT.to_json()))) == RESULT


def test_members_get_the_names_that_the_reader_has() -> None:
    renamed = RESULT.renamed({("node1", 0): "rank 0 (node1)"})
    assert renamed.labels == {"rank 0 (node1)": ("node1", 0)}
    assert renamed.facts[0].fact.hosts == ("rank 0 (node1)",)


@pytest.mark.parametrize(
    "told", [{}, {"labels": []}, {**RESULT.to_json(), "labels": {"a": 3}}, {"labels": {}, "facts": [3]}]
)
def test_anything_else_is_refused(told: dict[str, object]) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        group_from_json(told)
