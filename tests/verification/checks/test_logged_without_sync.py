"""Metrics that Lightning logs of one rank."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.logged_without_sync import check
from tests.verification.made import Job


def job(*values: float, synced: bool = False) -> Job:
    def more(rank: int) -> list[dict[str, Any]]:
        told = {"k": "logged", "fx": "validation_step", "name": "val_acc", "line": "train.py:14", "synced": synced}
        return [told | {"value": 0.5}, told | {"value": values[rank]}]

    return Job(more=more)


def test_values_that_differ_are_those_of_shares() -> None:
    (found,) = check(job(0.5, 0.75).evidence)
    assert (found.cause, found.line) == ("metric-of-one-share", "train.py:14")
    assert "`val_acc` is logged without `sync_dist=True`" in found.headline


def test_reduced_and_equal_values() -> None:
    assert not list(check(job(0.5, 0.75, synced=True).evidence))
    assert not list(check(job(0.5, 0.5).evidence))
    assert not list(check(Job().evidence))
