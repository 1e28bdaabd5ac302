"""DDP over a part of the ranks, while the data are dealt to all of them: each part trains a model of its own."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model.ranks import all_of, name_ranks
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from phalanx.verification.replicas import averages_parameters, is_model_parallel
from phalanx.verification.samples import passes_of


def check(evidence: Evidence) -> Iterator[Found]:
    """Only where the sampler says that all ranks are meant to work on one model."""
    if averages_parameters(evidence) or is_model_parallel(evidence):
        return
    for rank, one in sorted(evidence.ranks.items()):
        for told in one.wrapped.values():
            members = tuple(told["members"])
            shared = any(each.trains and each.replicas == evidence.size for each in passes_of(one))
            if len(members) >= evidence.size or rank not in members or not shared:
                continue
            yield Found(
                cause="gradients-reduced-over-wrong-group",
                headline=f"DDP at {told['line']} reduces gradients over {name_ranks(members)} only, while the data are dealt to {all_of(evidence.size, 'ranks')}: the groups train models of their own.",
                line=str(told["line"]),
                pattern="fix-distributed-api-usage",
                do="Leave out `process_group`, so that DDP takes all ranks; or give the sampler the group's size and rank.",
                why="Ranks outside of the group never hear of its gradients.",
                title="Gradients reduced over a part of the ranks",
                explains=("weights-diverge", "gradients-not-synchronised", "initial-weights-differ"),
            )
            return
