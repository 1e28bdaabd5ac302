"""Streams that workers do not share out."""

from __future__ import annotations

from phalanx.verification.checks.repeated_by_workers import check
from tests.verification.passes import job, loader, one_pass


def stream(workers: int) -> dict[str, object]:
    return loader(sampler="_InfiniteConstantSampler", iterable=True, workers=workers)


def test_every_sample_comes_twice() -> None:
    records = [stream(2), *one_pass([None] * 16, rows=[*range(8), *range(8)])]
    (found,) = check(job(records, records))
    assert "Every sample comes 2 times in an epoch" in found.headline


def test_healthy_jobs_give_nothing() -> None:
    once = [stream(2), *one_pass([None] * 16, rows=range(16))]
    assert not list(check(job(once, once)))
    again = one_pass([None] * 16, rows=[*range(8), *range(8)])
    assert not list(check(job([stream(0), *again], [stream(0), *again]))), "the data themselves repeat"
