"""Parameters that are exchanged between ranks and added up, not averaged."""

from __future__ import annotations

import math
from collections.abc import Iterator

from phalanx.verification.evidence import Evidence, Sketch, Step
from phalanx.verification.found import DIVERGES, Found
from phalanx.verification.replicas import calls_of, replicas_of

_CLOSE = 0.02


def check(evidence: Evidence) -> Iterator[Found]:
    """What a step begins with, against what the ranks ended the step before with, where parameters were reduced between."""
    for optimizer in evidence.optimizers:
        plain = [one for one in replicas_of(evidence, optimizer) if one.parameter.is_whole]
        looked = dict(evidence.common_steps(optimizer))
        for number, steps in looked.items():
            line = _reduced(next(iter(steps.values())))
            before = looked.get(number - 1)
            if not plain or before is None or not line:
                continue
            size = len(plain[0].ranks)
            pairs = [(steps[one.ranks[0]].before[one.index], [before[rank].after[one.index] for rank in one.ranks]) for one in plain]  # fmt: skip
            if all(_is_sum(begun, ended) for begun, ended in pairs):
                yield _found(line, number, size, plain[0].parameter.name)
                return


def _reduced(step: Step) -> str:
    """The line that hands parameters to a sum."""
    calls = [call for call in calls_of(step.events) if call["what"].startswith("param") and call["red"] == "SUM"]
    return str(calls[0]["line"]) if calls else ""


def _is_sum(begun: Sketch | None, ended: list[Sketch | None]) -> bool:
    if begun is None or any(one is None for one in ended) or not all(map(math.isfinite, begun)):
        return False
    total = [sum(one[axis] for one in ended if one is not None) for axis in (0, 1)]
    return math.hypot(begun[0] - total[0], begun[1] - total[1]) <= _CLOSE * begun[2] and begun[2] > 0


def _found(line: str, number: int, size: int, name: str) -> Found:
    return Found(
        cause="parameters-summed-not-averaged",
        headline=f"Parameters are summed over the {size} ranks ({line}) and not divided: before step {number + 1} `{name}` is the sum of the ranks' values, {size} × their mean.",
        line=line,
        pattern="fix-distributed-api-usage",
        do="Divide behind the reduction: `p.data /= dist.get_world_size()`.",
        why="The mean of the ranks' weights is a model; their sum is not.",
        symptom=DIVERGES,
        title="Parameters summed, not averaged",
    )  # fmt: skip
