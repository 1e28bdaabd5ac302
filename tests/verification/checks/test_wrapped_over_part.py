"""DDP over some of the ranks."""

from __future__ import annotations

from phalanx.verification.checks.wrapped_over_part import check
from phalanx.verification.evidence import Evidence, RankEvidence
from tests.verification.passes import job, loader, one_pass


def halves(replicas: int) -> Evidence:
    ranks = [[loader(num_replicas=replicas, rank=rank % replicas), *one_pass(range(rank, 32, 4))] for rank in range(4)]
    whole = job(*ranks)
    parts = {}
    for rank, one in whole.ranks.items():
        members = [0, 1] if rank < 2 else [2, 3]
        told = tuple({**record, "members": members} if record["k"] == "wrapped" else record for record in one.records)
        parts[rank] = RankEvidence(rank, told)
    return Evidence(parts, 4)


def test_the_data_are_dealt_to_all() -> None:
    (found,) = check(halves(4))
    assert "reduces gradients over ranks 0, 1 only, while the data are dealt to all 4 ranks" in found.headline


def test_healthy_jobs_give_nothing() -> None:
    assert not list(check(halves(2))), "two trainings, each with data of its own"
    ranks = [[loader(num_replicas=2, rank=rank), *one_pass(range(rank, 32, 2))] for rank in range(2)]
    assert not list(check(job(*ranks)))
