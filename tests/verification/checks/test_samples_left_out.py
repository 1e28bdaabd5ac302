"""Shares that nobody takes."""

from __future__ import annotations

from phalanx.verification.checks.samples_left_out import check
from tests.verification.passes import job, loader, one_pass


def test_more_replicas_than_ranks() -> None:
    ranks = [[loader(num_replicas=4, rank=rank), *one_pass(range(rank, 32, 4))] for rank in range(2)]
    (found,) = check(job(*ranks))
    assert "deals 32 samples to 4 replicas, and 2 ranks run: only 2 of 4 shares are ever trained on" in found.headline


def test_healthy_jobs_give_nothing() -> None:
    ranks = [[loader(num_replicas=2, rank=rank), *one_pass(range(rank, 32, 2))] for rank in range(2)]
    assert not list(check(job(*ranks)))
