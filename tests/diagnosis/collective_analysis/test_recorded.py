"""Dumps of real jobs: NCCL on real GPUs with injected faults, and Gloo by `gloo_job.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.diagnosis import diagnose_paths
from phalanx.diagnosis.collective_analysis import Break, observe
from phalanx.sources import find_inputs
from phalanx.sources.traces import find_traces, read_traces

RECORDED = Path(__file__).parent / "recorded"
TRUTH = {
    "nccl-16-ranks-gpu_error_1st": (Break.DEVICE, (12, 14), "device-stalled"),
    "nccl-16-ranks-lock_gil_1st": (Break.HOST, (9, 14), "host-stalled"),
    "gloo-missing": (Break.HOST, (2,), "host-stalled"),
    "gloo-order": (Break.MISMATCH, (2,), "collective-operation-differs"),
    "gloo-shape": (Break.MISMATCH, (2,), "collective-size-differs"),
    "gloo-group": (Break.ORDER, (2,), "other-order-of-calls"),
    "gloo-p2p": (Break.HOST, (2,), "host-stalled"),  # Gloo does not record send and recv
}


@pytest.mark.parametrize("folder", TRUTH)
def test_exactly_the_broken_ranks_and_the_right_kind(folder: str) -> None:
    kind, ranks, cause = TRUTH[folder]
    inputs, _ = find_inputs([str(RECORDED / folder)])
    (job,) = read_traces(find_traces(inputs)[0])
    assert [(one.kind, one.ranks) for one in observe(job)] == [(kind, ranks)]
    report = diagnose_paths([str(RECORDED / folder)])
    assert report.verdict is not None
    assert (report.verdict.cause, report.verdict.culprit_ranks) == (cause, ranks)
    assert report.verdict.distributed_specific
    assert set(report.verdict.victim_ranks) == set(range(len(job.files))) - set(ranks)
    assert len(report.verdict.fixes) >= 3


def test_the_line_of_the_users_code_is_told() -> None:
    report = diagnose_paths([str(RECORDED / "gloo-shape")])
    assert report.verdict is not None
    where = report.verdict.fixes[0].where
    assert where is not None
    assert where.file == "/home/user/job/gloo_job.py"


def test_a_healthy_job_has_no_finding() -> None:
    report = diagnose_paths([str(RECORDED / "gloo-none")])
    assert report.verdict is None
    assert len(report.read) == 4


def test_two_jobs_in_one_folder_are_told_apart() -> None:
    folders = [str(RECORDED / name) for name in ("nccl-16-ranks-gpu_error_1st", "gloo-missing")]
    inputs = [one for folder in folders for one in find_inputs([str(Path(folder))])[0]]
    jobs = read_traces(find_traces(inputs)[0])
    assert [len(job.files) for job in jobs] == [16, 4]
    report = diagnose_paths(folders)
    assert report.verdict is not None
    assert report.verdict.culprit_ranks == (12, 14)
    assert any("another job" in item.what for item in report.not_checked)
