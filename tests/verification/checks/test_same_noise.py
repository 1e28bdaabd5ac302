"""Random numbers that should differ between ranks."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.same_noise import check
from tests.verification.made import Job


def job(same: bool, dropout: bool = True, by: str = "__main__", same_data: bool = False) -> Job:
    def events(rank: int, step: int) -> list[list[Any]]:
        at = {"m": 0, "training": True, "line": "train.py:15", "dropout": dropout}
        return [["forward", at | {"rng": step if same else (rank, step), "mark": step if same_data else (rank, step)}]]

    seed = {"k": "seed", "what": "torch", "value": 42, "line": "train.py:4", "by": by}
    return Job(events=events, more=lambda rank: [seed])


def test_the_same_masks_everywhere() -> None:
    (found,) = check(job(same=True).evidence)
    assert found.cause == "same-noise-on-all-ranks"
    assert "seeded with 42 (train.py:4)" in found.headline


def test_what_is_no_fault() -> None:
    assert not list(check(job(same=False).evidence))
    assert not list(check(job(same=True, dropout=False).evidence))
    assert not list(check(job(same=True, by="lightning").evidence))
    assert not list(check(job(same=True, same_data=True).evidence))


def test_noise_that_the_script_draws_itself() -> None:
    def drawn(same: bool, same_data: bool = False) -> list[str]:
        def events(rank: int, step: int) -> list[list[Any]]:
            noise = {"what": "randn_like", "rng": step if same else 100 * rank + step, "line": "train.py:14"}
            at = {"m": 0, "training": True, "dropout": False, "rng": 0, "mark": step if same_data else (rank, step)}
            return [["noise", noise], ["forward", at]]

        seed = {"k": "seed", "what": "torch", "value": 42, "line": "train.py:4", "by": "__main__"}
        job = Job(steps=6, events=events, more=lambda rank: [seed])
        return [one.headline for one in check(job.evidence)]

    (said,) = drawn(same=True)
    assert "The noise drawn at train.py:14 is the same on both ranks" in said
    assert not drawn(same=False)
    assert not drawn(same=True, same_data=True), "the data are the fault to tell"
