"""DDP over a part of the ranks, while the data are dealt to all of them: each part trains a model of its own."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model.ranks import all_of, name_ranks
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from phalanx.verification.replicas import (
    FAR,
    SAME,
    averages_parameters,
    calls_of,
    comparable,
    is_model_parallel,
    keeps_models_apart,
    spread,
)
from phalanx.verification.samples import passes_of


def check(evidence: Evidence) -> Iterator[Found]:
    """Only where the sampler says that all ranks are meant to work on one model."""
    if averages_parameters(evidence) or is_model_parallel(evidence):
        return
    for rank, one in sorted(evidence.ranks.items()):
        for told in one.wrapped.values():
            members = tuple(told["members"])
            shared = any(each.trains and each.replicas == evidence.size for each in passes_of(one)) or _each_alone(
                evidence
            )
            if len(members) >= evidence.size or rank not in members or not shared:
                continue
            others = (
                "the others train the same model"
                if len(members) == 1
                else f"the data are dealt to {all_of(evidence.size, 'ranks')}"
            )
            yield Found(
                cause="gradients-reduced-over-wrong-group",
                headline=f"DDP at {told['line']} reduces gradients over {name_ranks(members)} only, while {others}: the groups train models of their own.",
                line=str(told["line"]),
                pattern="fix-distributed-api-usage",
                do="Leave out `process_group`, so that DDP takes all ranks; or give the sampler the group's size and rank.",
                why="Ranks outside of the group never hear of its gradients.",
                title="Gradients reduced over a part of the ranks",
                explains=("weights-diverge", "gradients-not-synchronised", "initial-weights-differ"),
            )
            return


def _each_alone(evidence: Evidence) -> bool:
    """Every rank wraps the same model over itself alone, with the same weights and settings, and learns from other data: DDP reduces nothing.

    Ranks that each save a model of their own, or try other settings, mean it.
    """
    ranks = tuple(sorted(evidence.ranks))
    wrapped = {rank: [tuple(one["members"]) for one in evidence.ranks[rank].wrapped.values()] for rank in ranks}
    if any(members != [(rank,)] for rank, members in wrapped.items()) or keeps_models_apart(evidence, ranks):
        return False
    for optimizer in evidence.optimizers:
        held = evidence.holders(optimizer)
        steps = [at for _, at in evidence.common_steps(optimizer) if comparable(at)]
        if (
            len(held) < evidence.size
            or len(steps) < 2
            or any(one.hyper != held[ranks[0]].hyper for one in held.values())
        ):
            return False
        if any(len({step.lr for step in at.values()}) > 1 for at in steps):
            return False
        starts = zip(*(steps[0][rank].before for rank in ranks), strict=True)
        apart = [
            any(spread(values) > FAR for values in zip(*(at[rank].grad for rank in ranks), strict=True)) for at in steps
        ]
        if any(spread(values) > SAME for values in starts) or not all(apart):
            return False
    calls = [call for one in evidence.ranks.values() for call in calls_of(one.events)]
    return not any(str(call["what"]).startswith("grad") and call["red"] for call in calls)
