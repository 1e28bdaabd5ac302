"""Weights that differ between ranks that train together."""

from __future__ import annotations

from phalanx.verification.checks.weights_differ import check
from tests.verification.made import Job, call, vector


def test_healthy_replicas_give_nothing() -> None:
    assert not list(check(Job().evidence))
    assert not list(check(Job(wrapped=False).evidence))


def test_other_seeds_without_a_broadcast_are_named() -> None:
    job = Job(wrapped=False, start=lambda rank, index: vector("w", rank, index))
    (found,) = check(job.evidence)
    assert found.cause == "initial-weights-differ"
    assert "fc1.weight" in found.headline
    assert "2 of 2 parameters differ before step 1" in found.headline
    assert found.line == "train.py:9"
    assert found.culprits == ()  # a tie accuses nobody


def test_one_of_three_is_accused() -> None:
    job = Job(size=3, wrapped=False, start=lambda rank, index: vector("w", rank == 1, index))
    (found,) = check(job.evidence)
    assert found.culprits == (1,)


def test_another_rate_on_one_rank_drives_them_apart_at_that_step() -> None:
    job = Job(size=3, rate=lambda rank, step: 0.2 if rank == 2 and step == 2 else 0.1)
    (found,) = check(job.evidence)
    assert found.cause == "weights-diverge"
    assert "Rank 2" in found.headline
    assert "step 3" in found.headline


def test_weights_that_are_averaged_now_and_then_are_local_sgd() -> None:
    start = lambda rank, index: vector("w", rank, index)  # noqa: E731
    job = Job(wrapped=False, start=start, events=lambda rank, step: [call("param")] if step == 2 else [])
    assert not list(check(job.evidence))


def test_models_of_their_own_are_no_replicas() -> None:
    job = Job(
        wrapped=False, start=lambda rank, index: vector("w", rank, index), reduce=lambda own, rank, index: own[rank]
    )
    assert not list(check(job.evidence))


def test_weights_that_were_apart_before_anything_was_reduced() -> None:
    """Horovod makes a step with gradients of zero to fill the optimizer's state."""
    zero = {"grad": [[0.0, 0.0, 0.0]] * 2, "own": [None, None]}
    start = lambda rank, index: vector("w", rank, index)  # noqa: E731
    job = Job(wrapped=False, start=start, fields=lambda rank, step: zero if step == 0 else {})
    assert [one.cause for one in check(job.evidence)] == ["initial-weights-differ"]


def test_weights_that_one_rank_loads_are_named_by_the_line_that_loads() -> None:
    def loads(rank: int) -> list[dict[str, object]]:
        return [{"k": "loaded", "step": 0, "cls": "Net", "line": "train.py:12"}] if rank == 0 else []

    apart = Job(start=lambda rank, index: vector("w", rank, index), more=loads)
    (found,) = check(apart.evidence)
    assert (found.cause, found.line, found.culprits) == ("weights-loaded-on-some-ranks", "train.py:12", ())
    assert "Only rank 0 loads saved weights (train.py:12)" in found.headline
    assert not list(check(Job(more=loads).evidence)), "broadcast afterwards"
