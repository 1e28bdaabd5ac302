"""Loss scalers that disagree."""

from __future__ import annotations

from phalanx.verification.checks.skipped_steps_differ import check
from tests.verification.made import Job


def test_scalers_that_agree() -> None:
    assert not list(check(Job(events=lambda rank, step: [["scaler", {"scale": 1024.0}]]).evidence))


def test_one_rank_skips() -> None:
    job = Job(
        size=3,
        events=lambda rank, step: [["scaler", {"scale": 1024.0}]],
        fields=lambda rank, step: {"skipped": rank == 1 and step == 2},
    )
    (found,) = check(job.evidence)
    assert found.headline.startswith("Rank 1 skipped step 3")
    assert found.culprits == (1,)


def test_other_scales() -> None:
    (found,) = check(Job(events=lambda rank, step: [["scaler", {"scale": 1024.0 * (1 + rank)}]]).evidence)
    assert "1024 on rank 0, 2048 on rank 1" in found.headline
