"""The words of the status line, and of the short verdict."""

from __future__ import annotations

from typing import Any

from phalanx.run.observer import RankStatus
from phalanx.run.status import status_line
from phalanx.run.verdict import short_text


def test_all_that_is_known() -> None:
    ranks = {
        0: RankStatus(120, 8.14, 1 << 30, 0),
        1: RankStatus(117, 8.0, 2 << 30, 3),
        2: RankStatus(120, 8.0, 1 << 30, 0),
    }
    line = status_line(ranks, {0, 1, 2}, 3, 3725)
    assert (
        line
        == "1:02:05 · 3 ranks · steps 117 to 120 · 8.0 steps/s · 4.0 GB (largest 2.0 GB) · rank 1 is 3 steps behind"
    )


def test_those_that_are_equally_far_behind() -> None:
    ranks = {rank: RankStatus(behind=int(rank < 2), unit="collective") for rank in range(4)}
    assert status_line(ranks, set(ranks), 4, 5).endswith("ranks 0-1 are 1 collective behind")


def test_nothing_known() -> None:
    assert status_line({}, {0}, 2, 5) == "0:05 · 1 of 2 ranks"


def test_a_majority_is_not_behind() -> None:
    ranks = {0: RankStatus(behind=0), 1: RankStatus(behind=2), 2: RankStatus(behind=2)}
    assert "behind" not in status_line(ranks, {0, 1, 2}, 3, 1)


def verdict(**more: Any) -> dict[str, Any]:
    base = {
        "title": "A rank did not come", "rule": "HNG005", "symptom": "perf.hang", "confidence": "likely", "summary": "Rank 2 is elsewhere.",
        "headline": "Rank 2 never joined (train.py:8).", "culprit_confidence": "confirmed", "cause_confidence": "likely",
        "place": {"file": "/home/user/train.py", "line": 8, "function": "main", "text": "dist.barrier()"},
        "culprit_ranks": [2], "victim_ranks": [0, 1, 3], "fixes": [{"title": "Filler", "do": "Look around.", "basis": "study"}, {"title": "Let it come", "do": "Do so.", "basis": "rule"}],
    }  # fmt: skip
    return {"verdict": {**base, **more}}


def test_short_text() -> None:
    assert short_text(verdict()).splitlines() == [
        "✗ Rank 2 never joined (train.py:8).",
        "    train.py:8 | dist.barrier()",
        "  A rank did not come  [HNG005, perf.hang, who: confirmed, why: likely]",
        "  who  rank 2; ranks 0, 1, 3 suffered from it",
        "  fix  Let it come: Do so.",
    ]
    assert "no rank stands out: ranks 0, 1 alike" in short_text(verdict(culprit_ranks=[], affected_ranks=[0, 1]))
    assert short_text({"verdict": None}) == ""
