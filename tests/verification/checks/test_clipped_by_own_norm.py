"""Clipping of FSDP1's flat parameters."""

from __future__ import annotations

from phalanx.verification.checks.clipped_by_own_norm import check
from tests.verification.made import NAMES, Job


def clipped(norm: dict[int, float], kind: str = "fsdp1", most: float = 1.0) -> list[str]:
    held = [[1, name, [3], "float32", True, 0, None] for name in NAMES]
    told = {"k": "optimizer", "o": 0, "cls": "SGD", "line": "train.py:9", "parameters": held, "hyper": [{}]}
    model = {"k": "model", "m": 1, "kind": kind, "cls": "Net", "inside": None}
    events = lambda rank, step: [["clip", {"line": "train.py:18", "most": most, "norm": norm[rank]}]]  # noqa: E731
    job = Job(wrapped=False, events=events, more=lambda rank: [told, model])
    return [one.cause for one in check(job.evidence)]


def test_each_rank_by_its_own_norm() -> None:
    assert clipped({0: 3.0, 1: 4.0}) == ["clipped-by-local-norm"]


def test_one_norm_nothing_cut_and_whole_parameters() -> None:
    assert clipped({0: 3.0, 1: 3.0}) == []
    assert clipped({0: 3.0, 1: 4.0}, most=10.0) == []
    assert clipped({0: 3.0, 1: 4.0}, kind="module") == []
