"""A rank that leaves out single steps which the others take, without a loss scaler: a condition on its own loss or data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from phalanx.blame.quorum import is_minority
from phalanx.model.ranks import name_ranks
from phalanx.verification.evidence import Evidence, Step
from phalanx.verification.found import Found
from phalanx.verification.replicas import averages_parameters, replicas_of

Places = Mapping[int, Step]  # steps by the number of collectives over all ranks that came before


def check(evidence: Evidence) -> Iterator[Found]:
    """Two ranks are at the same place where they have called as many collectives: there one steps and the other does not."""
    if averages_parameters(evidence):
        return
    for optimizer in evidence.optimizers:
        members = {one.ranks for one in replicas_of(evidence, optimizer) if one.wrapper is not None}
        if len(members) != 1:
            continue
        places = {rank: _places(evidence, rank, optimizer) for rank in members.pop()}
        if any(not found for found in places.values()):
            continue
        for place in sorted(set().union(*places.values())):
            without = [rank for rank, found in places.items() if place not in found]
            if without and all(min(places[rank]) < place < max(places[rank]) for rank in without):
                yield _found(places, place, without)
                return


def _places(evidence: Evidence, rank: int, optimizer: int) -> Places:
    return {step.made: step for step in evidence.ranks[rank].steps_of(optimizer).values() if step.made}


def _found(places: Mapping[int, Places], place: int, without: list[int]) -> Found:
    taken = next(found[place] for found in places.values() if place in found)
    ranks = name_ranks(without)
    few = is_minority(without, places, directed=True)
    return Found(
        cause="skipped-steps-differ",
        headline=f"{ranks[:1].upper()}{ranks[1:]} left out step {taken.number + 1} of the optimizer ({taken.line}), which the others took with the same gradients: "
        f"their weights differ from then on.",
        line=taken.line,
        pattern="fix-consistency-between-devices",
        do="Let all ranks decide alike: reduce what the decision is made from (`dist.all_reduce(loss, op=dist.ReduceOp.MAX)`) before the condition.",
        why="DDP gives all ranks the same gradients and leaves the update to each; a step that only some take is never made up for.",
        title="A step is taken on some ranks only",
        culprits=tuple(without) if few else (),
        explains=("weights-diverge", "weights-changed-on-some-ranks", "steps-on-some-ranks-only"),
    )  # fmt: skip
