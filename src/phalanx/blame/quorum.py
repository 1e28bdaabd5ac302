"""The one place that decides whether few enough ranks differ from the rest to be accused: a tie accuses nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

Value = TypeVar("Value", bound=Hashable)


def is_minority(part: Collection[int], whole: Collection[int], *, directed: bool = False) -> bool:
    """Whether `part` is less than half of `whole`.

    `directed`: the evidence itself says which side is at fault (one waits, the other is not there). Then the one of a pair
    may be accused too; with evidence that only says that two sides differ it may not.
    """
    count = len(set(part))
    return count > 0 and (count * 2 < len(whole) or (directed and count == 1 and len(whole) == 2))


def is_majority(part: Collection[int], whole: Collection[int]) -> bool:
    """Whether `part` is more than half of `whole`."""
    return len(set(part)) * 2 > len(whole)


def odd_ones(values: Mapping[int, Value], whole: Collection[int]) -> frozenset[int]:
    """The ranks whose value is not the one that more than half of all ranks have; nobody where no value has a majority."""
    if not values:
        return frozenset()
    common, most = Counter(values.values()).most_common(1)[0]
    odd = frozenset(rank for rank, value in values.items() if value != common)
    return odd if most * 2 > len(whole) else frozenset()
