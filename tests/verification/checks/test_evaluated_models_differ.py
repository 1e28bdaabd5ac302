"""Evaluations with weights that differ between ranks."""

from __future__ import annotations

from phalanx.verification.checks.evaluated_models_differ import check
from phalanx.verification.evidence import Evidence
from tests.verification.made import call
from tests.verification.passes import job, loader, one_pass


def evaluated(*weights: list[float], reduces: bool = True, whole: bool = False) -> Evidence:
    calls = [call("", n=2)] if reduces else []
    ranks = []
    for rank, value in enumerate(weights):
        ids = range(8) if whole else range(rank, 16, 2)
        told = {"weights": value}
        ranks.append([loader(), *one_pass(ids, trains=False, evals=told, calls=calls or [["forward", {}]])])
    return job(*ranks)


def test_a_moving_average_that_only_one_rank_updates() -> None:
    (found,) = check(evaluated([1.0, 2.0, 3.0], [1.5, 2.0, 3.1]))
    assert (found.cause, found.line, found.culprits) == ("evaluated-models-differ", "train.py:20", ())


def test_equal_weights_and_results_that_nobody_joins() -> None:
    assert not list(check(evaluated([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])))
    assert not list(check(evaluated([1.0, 2.0, 3.0], [1.5, 2.0, 3.1], reduces=False)))
    assert not list(check(evaluated([1.0, 2.0, 3.0], [1.5, 2.0, 3.1], whole=True)))
