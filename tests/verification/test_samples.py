"""Passes over loaders, and who took whose samples."""

from __future__ import annotations

from phalanx.verification.samples import data_parallel_ranks, passes_of, shared
from tests.verification.made import Job, call
from tests.verification.passes import job, loader, one_pass


def test_a_pass_trains_if_a_step_follows_one_of_its_batches() -> None:
    records = [loader(0), loader(1), *one_pass(range(8)), *one_pass(range(8), 1, trains=False)]
    evidence = job([*records, {"k": "step", "o": 0, "n": 1, "step": 1, "events": []}], records)
    training, evaluating = passes_of(evidence.ranks[0])
    assert (training.trains, training.batches, training.is_whole) == (True, 2, True)
    assert (evaluating.trains, len(evaluating.evals)) == (False, 2), "a step after its end belongs to other data"


def test_a_sample_is_known_by_its_looks_whatever_its_index() -> None:
    own = loader(sampler="SequentialSampler")
    evidence = job([own, *one_pass([0, 1, 2, 3], rows=[5, 6, 7, 8])], [own, *one_pass([0, 1, 2, 3], rows=[7, 8, 9, 4])])
    assert shared({rank: passes_of(one)[0] for rank, one in evidence.ranks.items()}) == {0: 2, 1: 2}
    alike = job([own, *one_pass([0, 1, 2, 3], rows=[5, 5, 5, 5])], [own, *one_pass([2, 3, 4, 5], rows=[5, 5, 5, 5])])
    assert shared({rank: passes_of(one)[0] for rank, one in alike.ranks.items()}) == {0: 2, 1: 2}


def test_one_index_is_one_sample_only_if_it_looks_alike() -> None:
    evidence = job([loader(), *one_pass([0, 1, 2, 3])], [loader(), *one_pass([0, 1, 2, 3], rows=[1000, 7, 8, 1003])])
    passes = {rank: passes_of(one)[0] for rank, one in evidence.ranks.items()}
    assert shared(passes) == {0: 2, 1: 2}


def test_who_should_train_on_different_data() -> None:
    assert data_parallel_ranks(Job(3).evidence) == (0, 1, 2)
    assert data_parallel_ranks(Job(2, wrapped=False, events=lambda rank, step: [call("grad")]).evidence) == (0, 1)
    assert data_parallel_ranks(Job(2, wrapped=False).evidence) == (), "each may train a model of its own"
    pipeline = Job(2, wrapped=False, events=lambda rank, step: [call("", "send", n=64)])
    assert data_parallel_ranks(pipeline.evidence) == ()
