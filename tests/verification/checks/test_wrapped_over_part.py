"""DDP over some of the ranks."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.wrapped_over_part import check
from phalanx.verification.evidence import Evidence, RankEvidence
from tests.verification.made import Job, call, vector
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


def singletons(**told: Any) -> Evidence:
    whole = Job(reduce=lambda own, rank, index: own[rank], **told).evidence
    ranks = {}
    for rank, one in whole.ranks.items():
        records = ({**record, "members": [rank]} if record["k"] == "wrapped" else record for record in one.records)
        ranks[rank] = RankEvidence(rank, tuple(records))
    return Evidence(ranks, whole.size)


def test_every_rank_wraps_over_itself_alone() -> None:
    (found,) = check(singletons())
    assert found.cause == "gradients-reduced-over-wrong-group"
    assert "over rank 0 only, while the others train the same model" in found.headline


def test_models_that_are_meant_to_be_apart_give_nothing() -> None:
    assert not list(check(singletons(start=lambda rank, index: vector("w", rank, index)))), "other weights"
    assert not list(check(singletons(rate=lambda rank, step: 0.1 + rank))), "other rates"
    assert not list(check(singletons(own=lambda rank, step, index: vector("g", step, index)))), "the same data"
    saves = lambda rank: [{"k": "save", "path": f"model{rank}.pt", "line": "train.py:30"}]  # noqa: E731
    assert not list(check(singletons(more=saves))), "each rank keeps its own"
    assert not list(check(singletons(events=lambda rank, step: [call("param")]))), "averaged after the step"
    assert not list(check(singletons(events=lambda rank, step: [call("grad")]))), "reduced by hand"
