"""What shows of TensorFlow's loops."""

from __future__ import annotations

from phalanx.verification.graphs import looks_of, moves_together, samples_of, trained
from tests.verification.graph_jobs import graph_job


def test_weights_that_move_and_those_that_stay() -> None:
    looks = looks_of(graph_job())
    assert [look.number for look in looks] == [0, 1, 2, 3]
    assert trained(looks) == [0]
    assert looks[0].names == ("dense/kernel", "seed")


def test_updates_are_compared_not_weights() -> None:
    from_the_start = looks_of(graph_job(start=lambda rank: 5.0 * rank))
    assert from_the_start[-1].apart() == [0]
    assert moves_together(from_the_start, [0])
    drifting = looks_of(graph_job(update=lambda rank: 1.0 + rank))
    assert not moves_together(drifting, [0])


def test_batches_of_datasets_else_of_calls() -> None:
    job = graph_job()
    assert samples_of(job.ranks[0]) == {0: [(0, 2), (4, 6), (8, 10), (12, 14)]}
    assert samples_of(graph_job(dataset=False).ranks[0]) == {-1: [(0, 2), (4, 6), (8, 10), (12, 14)]}
