"""The same samples on several ranks."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.same_data import check
from phalanx.verification.evidence import Evidence
from tests.verification.made import Job
from tests.verification.passes import job, loader, one_pass


def found(evidence: Evidence) -> str:
    return "; ".join(f"{one.headline} {one.do}" for one in check(evidence))


def test_a_loader_without_a_sampler_for_ranks() -> None:
    plain = loader(sampler="RandomSampler")
    said = found(job([plain, *one_pass(range(16))], [plain, *one_pass(range(15, -1, -1))]))
    assert "Ranks 0, 1 each train on the same 16 samples in epoch 1 (loader at train.py:6: RandomSampler" in said
    assert "sampler=DistributedSampler(dataset)" in said


def test_a_sampler_that_is_told_the_same_rank_everywhere() -> None:
    dealt = loader(num_replicas=2, rank=0)
    said = found(job([dealt, *one_pass(range(0, 32, 2))], [dealt, *one_pass(range(0, 32, 2))]))
    assert "in the same order" in said
    assert "deals share 0 of 2 on all of them" in said
    assert "rank=dist.get_rank()" in said


def test_seeds_that_differ() -> None:
    one, two = loader(num_replicas=2, rank=0, seed=0), loader(num_replicas=2, rank=1, seed=1)
    said = found(job([one, *one_pass(range(16))], [two, *one_pass(range(8, 24))]))
    assert "8 of 16 of a rank's samples another rank took, too" in said
    assert "same `seed`" in said


def test_a_stream_that_is_not_split() -> None:
    stream = loader(sampler="_InfiniteConstantSampler", iterable=True, length=None)
    rows: list[Any] = list(range(500, 516))
    nobody = [None] * 16
    assert "not split by rank" in found(
        job([stream, *one_pass(nobody, rows=rows)], [stream, *one_pass(nobody, rows=rows)])
    )


def test_weights_that_draw_the_same_on_all_ranks() -> None:
    drawn = loader(sampler="WeightedRandomSampler")
    same, other = one_pass([3, 3, 7, 1, 9, 4, 3, 0]), one_pass([3, 8, 7, 1, 9, 2, 3, 1])
    assert "in the same order" in found(job([drawn, *same], [drawn, *same]))
    assert not found(job([drawn, *same], [drawn, *other]))


def test_healthy_jobs_give_nothing() -> None:
    one, two = loader(num_replicas=2, rank=0), loader(num_replicas=2, rank=1)
    assert not found(job([one, *one_pass(range(0, 32, 2))], [two, *one_pass(range(1, 32, 2))])), "dealt out"
    assert not found(job([one, *one_pass([*range(0, 18, 2)])], [two, *one_pass([*range(1, 17, 2), 0])])), "padded"
    own = loader(sampler="RandomSampler", length=16)
    apart = [own, *one_pass(range(16), rows=range(16))], [own, *one_pass(range(16), rows=range(100, 116))]
    assert not found(job(*apart)), "each rank has a dataset of its own, with indices from 0"
    single = loader(sampler="SequentialSampler")
    assert not found(job([single, *one_pass(range(4))], [single, *one_pass(range(4))])), "one batch: a smoke test"
    stream = loader(sampler="_InfiniteConstantSampler", iterable=True)
    tokens = one_pass([None] * 16, rows=[1, 2] * 8)
    assert not found(job([stream, *tokens], [stream, *tokens])), "rows that all look alike tell nothing"


def test_tensors_without_a_loader() -> None:
    def forward(rank_matters: bool, step_matters: bool) -> Evidence:
        def events(rank: int, step: int) -> list[list[Any]]:
            mark = 10 + (rank if rank_matters else 0) + (100 * step if step_matters else 0)
            return [["forward", {"m": 0, "training": True, "mark": mark, "line": "train.py:15"}]]

        return Job(2, steps=5, events=events).evidence

    assert "Both ranks train on the same batches" in found(forward(rank_matters=False, step_matters=True))
    assert not found(forward(rank_matters=True, step_matters=True))
    assert not found(forward(rank_matters=False, step_matters=False)), "one batch again and again"


def test_a_rank_that_follows_another_by_a_step() -> None:
    def read(lag: int) -> Evidence:
        def events(rank: int, step: int) -> list[list[Any]]:
            at = {"m": 0, "training": True, "line": "train.py:15", "mark": step * lag + rank}
            return [["forward", at]]

        return Job(steps=6, events=events).evidence

    assert "Rank 0 trains on what rank 1 trained on one step before, in all 5 steps" in found(read(1))
    assert not found(read(2)), "each moves on by the batches of both"
