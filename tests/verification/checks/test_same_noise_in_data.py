"""Random changes of samples that are the same in workers or on ranks."""

from __future__ import annotations

from typing import Any

from phalanx.verification.checks.same_noise_in_data import check
from phalanx.verification.evidence import Evidence
from tests.verification.passes import job, loader, one_pass


def fetch(worker: int | None, state: int, number: int = 0, begun: int = 7, source: str = "numpy") -> dict[str, Any]:
    return {"k": "fetch", "worker": worker, "number": number, "begun": begun, "drew": {source: state}}


def ranks(*fetches: list[dict[str, Any]], by: str = "__main__") -> Evidence:
    seed = {"k": "seed", "what": "numpy", "value": 3, "line": "train.py:2", "by": by}
    return job(*([seed, loader(), *one_pass(range(rank, 32, 2)), *found] for rank, found in enumerate(fetches)))


def test_workers_that_start_from_one_constant() -> None:
    (found,) = check(ranks([fetch(0, 5), fetch(1, 5)], [fetch(0, 5), fetch(1, 5)]))
    assert found.cause == "same-augmentation-in-workers"
    assert "both loader workers of every rank: NumPy's generator" in found.headline


def test_a_generator_that_is_copied_with_the_dataset_in_every_epoch() -> None:
    each = [fetch(worker, 5, begun=begun, source="dataset.rng") for begun in (7, 8) for worker in (0, 1)]
    (found,) = check(ranks(each, [fetch(0, 6), fetch(1, 7)]))
    assert "of rank 0, in every epoch: `dataset.rng`" in found.headline
    assert "not in `__init__`" in found.do


def test_ranks_that_draw_alike_in_their_own_process() -> None:
    same = [fetch(None, state, state) for state in range(3)]
    (found,) = check(ranks(same, same))
    assert found.cause == "same-noise-on-all-ranks"
    assert "seeded with 3 (train.py:2)" in found.headline


def test_states_that_differ_and_frameworks_that_seed_alike() -> None:
    assert not list(check(ranks([fetch(0, 5), fetch(1, 6)], [fetch(0, 5), fetch(1, 6)])))
    same = [fetch(None, state, state) for state in range(3)]
    assert not list(check(ranks(same, [fetch(None, 10 + state, state) for state in range(3)])))
    assert not list(check(ranks(same, same, by="lightning")))
