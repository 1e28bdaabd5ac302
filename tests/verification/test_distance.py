"""The picture of how far the ranks' weights are apart."""

from __future__ import annotations

from phalanx.report.html import render_html
from phalanx.verification.distance import distances
from phalanx.verification.judge import judge
from tests.verification.made import Job


def test_replicas_stay_at_zero_and_others_do_not() -> None:
    (figure,) = distances(Job().evidence)
    assert [value for _, value in figure.lines[0].points] == [0.0] * 5
    apart = Job(wrapped=False, reduce=lambda own, rank, index: own[rank])
    (figure,) = distances(apart.evidence)
    values = [value for _, value in figure.lines[0].points]
    assert values[0] == 0.0
    assert values[-1] > 1e-3
    page = render_html(judge(apart.evidence), (figure,))
    assert "<svg" in page
    assert "Distance of the weights between ranks" in page
    assert page.count("<circle") == 5
