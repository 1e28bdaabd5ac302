"""An evaluation that is dealt out over the ranks, each of which asks a model with weights of its own."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.blame.quorum import odd_ones
from phalanx.model.ranks import name_ranks
from phalanx.verification.evaluation import calls_after, evaluations
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from phalanx.verification.replicas import SAME, averages_parameters, spread
from phalanx.verification.samples import data_parallel_ranks, shared


def check(evidence: Evidence) -> Iterator[Found]:
    """Only where results are brought together: a model of their own may be what ranks are to compare."""
    ranks = data_parallel_ranks(evidence)
    if not ranks or averages_parameters(evidence):
        return
    for passes in evaluations(evidence, ranks):
        first = {rank: one.evals[0] for rank, one in passes.items()}
        weights = {rank: at.get("weights") for rank, at in first.items()}
        if any(value is None for value in weights.values()) or len({at["m"] for at in first.values()}) != 1:
            continue
        if spread([tuple(value or ()) for value in weights.values()]) <= SAME:
            continue
        if any(2 * shared(passes)[rank] > len(one.samples) for rank, one in passes.items()):
            continue  # every rank evaluates all of it
        if not all(calls_after(evidence.ranks[rank], one) for rank, one in passes.items()):
            continue
        odd = tuple(sorted(odd_ones({rank: str(value) for rank, value in weights.items()}, ranks)))
        line = str(first[ranks[0]]["line"])
        yield Found(
            cause="evaluated-models-differ",
            headline=f"{name_ranks(odd or ranks).capitalize()} evaluate{'s' if len(odd) == 1 else ''} a model with other weights ({line}, after step {first[ranks[0]]['step']}), "
            "and their results are joined: the metric is of no single model.",
            line=line,
            pattern="fix-consistency-between-devices",
            do="Keep the evaluated copy (a moving average, a loaded checkpoint) equal on all ranks: update it on every rank, or broadcast its weights from rank 0"
            " before the evaluation; or evaluate everything on rank 0.",
            why="What is trained is the same on all ranks; what is evaluated is not.",
            title="Ranks evaluate different weights",
            culprits=odd,
            quotes=tuple((rank, str(at["line"]), f"norm of the evaluated weights {at['weights'][2]:.9g}") for rank, at in list(first.items())[:4]),
        )  # fmt: skip
        return
