"""Epochs in the same order."""

from __future__ import annotations

from phalanx.verification.checks.not_reshuffled import check
from tests.verification.passes import Record, job, loader, one_pass


def two_epochs(second: list[int], set_epoch: int = 0, shuffle: bool = True) -> list[Record]:
    dealt = loader(num_replicas=2, rank=0, shuffle=shuffle)
    return [dealt, *one_pass([5, 2, 7, 0, 3]), *one_pass(second, epoch=1, set_epoch=set_epoch)]


def test_the_epoch_is_never_set() -> None:
    records = two_epochs([5, 2, 7, 0, 3])
    (found,) = check(job(records, records))
    assert found.cause == "sampler-not-reshuffled"
    assert "Both epochs have the same order" in found.headline
    assert found.line == "train.py:6"


def test_healthy_jobs_give_nothing() -> None:
    for records in (two_epochs([0, 3, 2, 5, 7], 1), two_epochs([5, 2, 7, 0, 3], shuffle=False), two_epochs([5])):
        assert not list(check(job(records, records)))
