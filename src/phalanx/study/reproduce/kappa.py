"""Cohen's kappa with its confidence interval: how far two raters agree beyond chance."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

_NORMAL_95 = 1.959964


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of two raters over `pairs` items; `low` and `high` bound kappa with 95 % confidence."""

    pairs: int
    observed: float
    kappa: float
    low: float
    high: float


def agree(pairs: Sequence[tuple[Hashable, Hashable]]) -> Agreement | None:
    """Return the agreement over pairs of labels, None where there are none.

    The interval is the large-sample one of Fleiss, Cohen and Everitt. Where all pairs agree it would have no
    width, which claims too much: there the lower bound is what three disagreements in n would give (the rule of three).
    Where both raters use one and the same label only, nothing can be told from chance, and kappa is 1 by convention.
    """
    total = len(pairs)
    if not total:
        return None
    first = Counter(left for left, _ in pairs)
    second = Counter(right for _, right in pairs)
    observed = sum(left == right for left, right in pairs) / total
    expected = sum(count * second[label] for label, count in first.items()) / total**2
    if expected == 1.0:
        return Agreement(total, 1.0, 1.0, 0.0, 1.0)
    kappa = (observed - expected) / (1 - expected)
    if observed == 1.0:
        low = (1 - min(3 / total, 1.0) - expected) / (1 - expected)
        return Agreement(total, observed, kappa, max(low, -1.0), 1.0)
    spread = _NORMAL_95 * _standard_error(pairs, first, second, expected, kappa)
    return Agreement(total, observed, kappa, max(kappa - spread, -1.0), min(kappa + spread, 1.0))


def _standard_error(
    pairs: Sequence[tuple[Hashable, Hashable]],
    first: Counter[Hashable],
    second: Counter[Hashable],
    expected: float,
    kappa: float,
) -> float:
    total = len(pairs)
    agreeing = disagreeing = 0.0
    for (left, right), count in Counter(pairs).items():
        share = count / total
        if left == right:
            weight = (first[left] + second[left]) / total
            agreeing += share * (1 - weight * (1 - kappa)) ** 2
        else:
            # Row total of the second rater's label and column total of the first's: as the formula crosses them.
            weight = (second[left] + first[right]) / total
            disagreeing += share * weight**2
    bracket = agreeing + (1 - kappa) ** 2 * disagreeing - (kappa - expected * (1 - kappa)) ** 2
    return math.sqrt(max(bracket, 0.0) / total) / (1 - expected)
