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


def test_a_sampler_of_the_users_own_that_keeps_an_epoch() -> None:
    def epochs(
        second: list[int], set_epoch: int | None = 0, first: list[int] | None = None, **told: bool
    ) -> list[Record]:
        dealt = loader(sampler="BucketSampler", **told)
        start = first or [5, 2, 7, 0, 3]
        kept = None if set_epoch is None else 0
        return [dealt, *one_pass(start, set_epoch=kept), *one_pass(second, epoch=1, set_epoch=set_epoch)]

    (found,) = check(job(*[epochs([5, 2, 7, 0, 3])] * 2))
    assert "`epoch` of the sampler `BucketSampler` stays 0" in found.headline
    healthy = (
        epochs([5, 2, 7, 0, 3], 1),  # it counts by itself
        epochs([5, 2, 7, 0, 3], None),  # it knows no epochs: a fixed order may be wanted
        epochs([0, 2, 4, 6, 8], first=[0, 2, 4, 6, 8]),  # it does not shuffle
        epochs([5, 2, 7, 0, 3], shuffle=False),
    )
    for records in healthy:
        assert not list(check(job(records, records)))
