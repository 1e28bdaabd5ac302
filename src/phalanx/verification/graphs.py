"""TensorFlow's training loops, as far as they show between two calls of a compiled function: weights, and the samples of ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from phalanx.verification.evidence import Evidence, RankEvidence, Sketch
from phalanx.verification.replicas import SAME, distance

_MOVES = 1e-7
_EQUAL = 1e-4  # of updates: those of equal gradients on unequal weights are rounded differently


@dataclass(frozen=True)
class Look:
    """The trainable variables of all ranks at one place of the loop."""

    number: int
    line: str
    names: tuple[str, ...]
    values: Mapping[int, tuple[Sketch | None, ...]]

    def apart(self) -> list[int]:
        """The variables whose values differ between ranks."""
        first, *rest = self.values.values()
        return [
            place
            for place in range(len(self.names))
            if any(distance(first[place], other[place]) > SAME for other in rest)
        ]


def looks_of(evidence: Evidence) -> list[Look]:
    """Places that were looked at on all ranks, where all hold the same variables."""
    by_rank = {rank: {int(at["n"]): at for at in one.all("weights")} for rank, one in evidence.ranks.items()}
    found = []
    for number in sorted(set.intersection(*(set(at) for at in by_rank.values()))) if len(by_rank) > 1 else ():
        here = {rank: at[number] for rank, at in by_rank.items()}
        names = {tuple(at["names"]) for at in here.values()}
        if len(names) == 1:
            values = {
                rank: tuple(None if one is None else tuple(one) for one in at["values"]) for rank, at in here.items()
            }
            found.append(Look(number, str(next(iter(here.values()))["line"]), names.pop(), values))
    return found


def trained(looks: list[Look]) -> list[int]:
    """The variables that change between the first look and the last, on any rank."""
    if len(looks) < 2 or looks[0].names != looks[-1].names:
        return []
    return [
        place
        for place in range(len(looks[0].names))
        if any(distance(looks[0].values[rank][place], last[place]) > _MOVES for rank, last in looks[-1].values.items())
    ]


def moves_together(looks: list[Look], places: list[int]) -> bool:
    """Whether the ranks' weights change by the same amounts: their gradients are reduced."""
    for before, after in pairwise(looks):
        for place in places:
            moved = [_difference(before.values[rank][place], after.values[rank][place]) for rank in after.values]
            if any(distance(moved[0], other) > _EQUAL for other in moved[1:]):
                return False
    return True


def _difference(one: Sketch | None, two: Sketch | None) -> Sketch | None:
    """Of the projections only: the norm of a difference is not that of the norms."""
    return None if one is None or two is None else tuple(b - a for a, b in zip(one[:2], two[:2], strict=True))


def samples_of(one: RankEvidence) -> dict[int, list[tuple[int, ...]]]:
    """By dataset: the batches that the loop took, each as the fingerprints of its samples; without a dataset those of function calls."""
    found: dict[int, list[tuple[int, ...]]] = {}
    for at in one.all("taken"):
        found.setdefault(int(at["d"]), []).append(tuple(at["rows"]))
    if not found:
        found[-1] = [tuple(at["rows"]) for at in one.all("called") if at["rows"]]
    return found
