"""Parameters that ranks exchange."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.parameters_summed import check
from phalanx.verification.evidence import Evidence, RankEvidence
from tests.verification.made import Job, call


def exchanged(factor: float, red: str = "SUM") -> list[str]:
    """Before step 3 each rank's parameters become so many times the mean over both."""
    made = Job(wrapped=False, reduce=lambda own, rank, index: own[rank]).evidence
    steps = {rank: one.all("step") for rank, one in made.ranks.items()}
    total = [
        [sum(steps[rank][1]["after"][index][axis] for rank in steps) / 2 * factor for axis in (0, 1)]
        for index in (0, 1)
    ]
    changed = {}
    for rank, one in made.ranks.items():
        later: dict[str, Any] = dict(steps[rank][2])
        later |= {"before": [[*at, sum(v * v for v in at) ** 0.5] for at in total], "events": [call("param", red=red)]}
        changed[rank] = RankEvidence(rank, tuple(later if at is steps[rank][2] else at for at in one.records))
    return [one.cause for one in check(Evidence(changed, made.size))]


def test_a_sum_is_told_from_a_mean() -> None:
    assert exchanged(2.0) == ["parameters-summed-not-averaged"]
    assert exchanged(1.0) == []
    assert exchanged(2.0, red="AVG") == []
