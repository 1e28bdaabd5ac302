"""Data that are dealt out twice."""

from __future__ import annotations

from collections.abc import Sequence

from phalanx.verification.checks.sharded_twice import check
from phalanx.verification.evidence import Evidence
from tests.verification.passes import job, loader, one_pass


def dealt(*contents: Sequence[int] | None, rows: int = 1000) -> Evidence:
    ranks = []
    for rank, held in enumerate(contents):
        one = loader(num_replicas=len(contents), rank=rank) | {"content": held}
        first, second = range(rank, 32, 2), range(1 - rank, 32, 2)
        looks = [[1000 + rank * rows + index for index in ids] for ids in (first, second)]
        ranks.append([one, *one_pass(first, rows=looks[0]), *one_pass(second, 0, 1, rows=looks[1])])
    return job(*ranks)


def test_datasets_without_a_common_sample() -> None:
    (found,) = check(dealt(range(64), range(100, 164)))
    assert found.cause == "data-sharded-twice"
    assert "loader at train.py:6" in found.headline


def test_an_index_that_is_another_sample_on_each_rank() -> None:
    (found,) = check(dealt(None, None))
    assert found.cause == "data-sharded-twice"


def test_one_dataset_and_plain_loaders() -> None:
    assert not list(check(dealt(range(64), range(64), rows=0)))
    assert not list(check(dealt(None, None, rows=0)))
    own = loader(sampler="RandomSampler") | {"content": list(range(16))}
    other = own | {"content": list(range(100, 116))}
    assert not list(check(job([own, *one_pass(range(16))], [other, *one_pass(range(16))])))
