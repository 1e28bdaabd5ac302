"""Only some ranks step the optimizer, and the others never get the new weights."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model.ranks import name_ranks
from phalanx.verification.evidence import Evidence, RankEvidence
from phalanx.verification.found import Found
from phalanx.verification.replicas import averages_parameters

_FEWEST = 3


def check(evidence: Evidence) -> Iterator[Found]:
    """All run the same wrapped model forward and backward; a learner that hands out its weights is left alone."""
    if averages_parameters(evidence):
        return
    steps = {rank: sum(1 for step in one.steps if not step.skipped) for rank, one in evidence.ranks.items()}
    movers = [rank for rank, count in steps.items() if count >= _FEWEST]
    idle = [rank for rank, count in steps.items() if count == 0 and _trains(evidence.ranks[rank])]
    if not movers or not idle or not all(evidence.ranks[rank].wrapped for rank in (*movers, *idle)):
        return
    line = evidence.ranks[movers[0]].steps[0].line
    yield Found(
        cause="steps-on-some-ranks-only",
        headline=f"Only {name_ranks(movers)} step{'s' if len(movers) == 1 else ''} the optimizer ({line}): {name_ranks(idle)} "
        f"compute{'s' if len(idle) == 1 else ''} gradients and never change{'s' if len(idle) == 1 else ''} the weights.",
        line=line,
        pattern="fix-behavior-logic",
        do="Call `optimizer.step()` on every rank: take it out of the condition on the rank.",
        why="DDP gives all ranks the same gradients and leaves the update to each; weights are not sent again.",
        title="Only some ranks step",
        culprits=tuple(idle) if len(idle) * 2 < len(evidence.ranks) else (),
        explains=("weights-diverge",),
    )


def _trains(one: RankEvidence) -> bool:
    return sum(1 for kind, _ in one.events if kind == "backward") >= _FEWEST
