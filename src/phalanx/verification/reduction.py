"""What became of each rank's own gradients by the time the optimizer used them: reduced, by which factor, over whom."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from phalanx.verification.evidence import Sketch, Step
from phalanx.verification.replicas import FAR, Replica, spread

EQUAL = 1e-5  # relative distance of gradients that were reduced together
_FITS = 1e-2  # relative residual of a factor that explains all gradients


@dataclass(frozen=True)
class Reduction:
    """One parameter at one step."""

    replica: Replica
    own: tuple[Sketch, ...]  # by the replica's ranks
    grad: tuple[Sketch, ...]

    @property
    def is_telling(self) -> bool:
        """Whether the ranks' own gradients differ, so that it shows what was done with them."""
        return spread(self.own) > FAR

    @property
    def is_reduced(self) -> bool:
        """Whether all ranks use the same gradient."""
        return spread(self.grad) <= EQUAL


def reductions(replicas: Iterable[Replica], steps: dict[int, Step]) -> list[Reduction]:
    """Of the parameters whose own and used gradients are known on all their ranks, and are finite."""
    found = []
    for one in replicas:
        own = one.of({rank: step.own for rank, step in steps.items()})
        grad = one.of({rank: step.grad for rank, step in steps.items()})
        known = [value for value in (*own, *grad) if value is not None and all(map(math.isfinite, value))]
        if len(known) == 2 * len(one.ranks) and any(value[2] > 0 for value in known if len(value) > 2):
            count = len(one.ranks)
            found.append(Reduction(one, tuple(known[:count]), tuple(known[count:])))
    return found


def factor_of(found: Sequence[Reduction]) -> float | None:
    """The one factor by which the used gradients are the mean of the ranks' own; None where no factor fits all of them."""
    used = [value for one in found for value in one.grad[0][:2]]
    mean = [value for one in found for value in _mean(one.own)]
    return _fit(used, mean)


def own_factor(found: Sequence[Reduction]) -> float | None:
    """The one factor by which every rank uses its own gradients; None where none fits."""
    used = [value for one in found for grad in one.grad for value in grad[:2]]
    own = [value for one in found for mine in one.own for value in mine]
    return _fit(used, own)


def factor_over(found: Sequence[Reduction], members: Sequence[int]) -> float | None:
    """The one factor by which the ranks among `members` use the mean over these ranks; None where none fits."""
    used, mean = [], []
    for one in found:
        places = [place for place, rank in enumerate(one.replica.ranks) if rank in members]
        common = _mean([one.own[place] for place in places])
        used += [value for place in places for value in one.grad[place][:2]]
        mean += list(common) * len(places)
    return _fit(used, mean)


def rank_weights(found: Sequence[Reduction]) -> list[float] | None:
    """With which weight each rank's own gradient is in the reduced one; None where no weights fit all parameters."""
    used = [value for one in found for value in one.grad[0][:2]]
    own = [
        [value for one in found for value in one.own[place][:2]] for place in range(len(found[0].own) if found else 0)
    ]
    if not own or len(used) < len(own) + 2:
        return None
    table = [[_dot(one, two) for two in own] + [_dot(one, used)] for one in own]
    weights = _solved(table)
    if weights is None:
        return None
    rest = [
        value - sum(w * one[place] for w, one in zip(weights, own, strict=True)) for place, value in enumerate(used)
    ]
    return weights if _dot(rest, rest) <= _FITS**2 * _dot(used, used) else None


def _dot(one: Sequence[float], two: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, two, strict=True))


def _solved(table: list[list[float]]) -> list[float] | None:
    """Gauss's elimination; None where the equations do not decide."""
    size = len(table)
    for column in range(size):
        best = max(range(column, size), key=lambda row: abs(table[row][column]))
        table[column], table[best] = table[best], table[column]
        if abs(table[column][column]) <= 1e-9 * max(abs(value) for row in table for value in row[:size]):
            return None
        for row in range(size):
            if row != column:
                by = table[row][column] / table[column][column]
                table[row] = [a - by * b for a, b in zip(table[row], table[column], strict=True)]
    return [row[size] / row[place] for place, row in enumerate(table)]


def _fit(used: Sequence[float], other: Sequence[float]) -> float | None:
    square = sum(value * value for value in other)
    if square == 0:
        return None
    factor = sum(a * b for a, b in zip(used, other, strict=True)) / square
    rest = math.sqrt(sum((a - factor * b) ** 2 for a, b in zip(used, other, strict=True)))
    return factor if rest <= _FITS * math.sqrt(sum(a * a for a in used)) and factor > 0 else None


def _mean(own: Sequence[Sketch]) -> Sketch:
    return tuple(sum(column) / len(own) for column in zip(*own, strict=True))
