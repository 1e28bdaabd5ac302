"""Jobs that were ended long after their last report."""

from __future__ import annotations

import pytest

from ...conftest import Diagnose

_ENDS = (
    "slurmstepd: error: *** JOB 881 ON node1 CANCELLED AT 2026-03-01T{} DUE TO TIME LIMIT ***",
    "W0301 {}.800000 20982 torch/distributed/elastic/agent/server/api.py:753] Received 15 death signal, shutting down workers",
)


def _job(ranks: int, last: dict[int, int], end: str) -> str:
    lines = [
        f"2026-03-01 10:00:{step:02d} rank {rank} step {step} loss {1 / (step + 1):.4f}"
        for step in range(12)
        for rank in range(ranks)
        if step <= last.get(rank, 11)
    ]
    return "\n".join([*lines, end]) + "\n"


@pytest.mark.parametrize("end", _ENDS)
def test_quiet_long_before_the_end(diagnose: Diagnose, end: str) -> None:
    verdict = diagnose({"job.log": _job(3, {}, end.format("11:00:00"))}).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.rule, verdict.culprit_ranks) == ("perf.hang", "HNG501", ())


def test_who_is_far_behind_is_named(diagnose: Diagnose) -> None:
    verdict = diagnose({"job.log": _job(3, {1: 8}, _ENDS[0].format("11:00:00"))}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (1,)


@pytest.mark.parametrize("end", _ENDS)
def test_training_to_the_end_is_no_standstill(diagnose: Diagnose, end: str) -> None:
    verdict = diagnose({"job.log": _job(3, {}, end.format("10:00:20"))}).verdict
    assert verdict is None or verdict.symptom != "perf.hang"
