"""Scores: what counts as found, as vague and as an alarm, and the sums."""

from __future__ import annotations

from typing import Any

import pytest

from phalanx.lab.fault import Expected, find_fault
from phalanx.lab.scoring import Score, score_fault, summarise, verdict_on
from tests.lab.beds import needs_beds

EVERYBODY = {"h0", "h1", "h2"}


def report(*findings: tuple[str, list[str]]) -> dict[str, Any]:
    return {"findings": [{"cause": cause, "culprit_hosts": hosts} for cause, hosts in findings]}


@pytest.mark.parametrize(
    ("reports", "verdict"),
    [
        ([report(("nat", ["h1"]))], "found"),
        ([report(("nat", ["h0", "h1", "h2"]))], "found"),  # said of all: nobody stands out
        ([report(("nat", ["h2"]))], "vague"),  # an innocent host
        ([report(("loss", []), ("nat", ["h1"]))], "vague"),  # not first
        ([report(("loss", [])), report(("nat", ["h1"]))], "found"),  # first in one rank's report
        ([report()], "missed"),
        ([], "missed"),
    ],
)
def test_verdicts_on_a_broken_bed(reports: list[dict[str, Any]], verdict: str) -> None:
    assert verdict_on(Expected("nat", hosts=("h1",)), reports, EVERYBODY) == verdict


def test_verdicts_on_a_healthy_bed() -> None:
    assert verdict_on(Expected(), [report()], EVERYBODY) == "quiet"
    assert verdict_on(Expected(), [report(("nat", []))], EVERYBODY) == "alarm"
    assert verdict_on(Expected(), [], EVERYBODY) == "missed"


def test_sums() -> None:
    scores = [
        Score("a", "each", "found", 2.0, ()),
        Score("b", "each", "vague", 4.0, ()),
        Score("c", "each", "quiet", 3.0, ()),
    ]
    assert summarise(scores) == "2 faulty: 1 found, 1 vague, 0 missed; 1 healthy: 0 alarms; median 3.0 s, longest 4.0 s"


@needs_beds
@pytest.mark.parametrize("way", ["each", "launcher"])
def test_a_bed_is_scored_as_a_user_would_check_it(way: str) -> None:
    scored = score_fault(find_fault("rank-duplicate")[0], way, 3)
    assert scored is not None
    assert (scored.verdict, scored.said) == ("found", ("rank-duplicate (h1, h2)",))


def test_what_ranks_cannot_see_is_not_asked_of_them() -> None:
    assert score_fault(find_fault("ssh-key")[0], "launcher", 3) is None
