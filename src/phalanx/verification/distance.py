"""How far the ranks' weights are apart over the steps: the picture of the report."""

from __future__ import annotations

from phalanx.model.figure import Figure, Line
from phalanx.verification.evidence import Evidence
from phalanx.verification.replicas import Replica, Values, distance, replicas_of


def distances(evidence: Evidence) -> tuple[Figure, ...]:
    """One figure for each optimizer whose parameters several ranks should hold alike."""
    found = []
    for optimizer in evidence.optimizers:
        replicas = replicas_of(evidence, optimizer)
        points: dict[int, list[tuple[float, float]]] = {}
        for number, steps in evidence.common_steps(optimizer):
            if number == 0:
                _add(points, 0, replicas, {rank: step.before for rank, step in steps.items()})
            _add(points, number + 1, replicas, {rank: step.after for rank, step in steps.items()})
        lines = tuple(Line(f"rank {rank}", tuple(values)) for rank, values in sorted(points.items()))
        if lines:
            found.append(
                Figure(
                    title=f"Distance of the weights between ranks (optimizer {optimizer + 1})",
                    caption="The largest relative distance of a parameter from the first rank that should hold the same, after each step that"
                    " was looked at. Replicas stay at zero.",
                    across="step",
                    up="relative distance",
                    lines=lines,
                    is_log=True,
                )
            )
    return tuple(found)


def _add(
    points: dict[int, list[tuple[float, float]]], step: int, replicas: tuple[Replica, ...], values: Values
) -> None:
    farthest: dict[int, float] = {}
    for one in replicas:
        first, *rest = one.ranks
        for rank in rest:
            apart = distance(values[first][one.index], values[rank][one.index])
            farthest[rank] = max(farthest.get(rank, 0.0), min(apart, 10.0))
    for rank, apart in farthest.items():
        points.setdefault(rank, []).append((float(step), apart))
