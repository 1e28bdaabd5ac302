"""Ranks that part from the rest: by a root, a name or an address in a common call, by a condition, a pass or a partner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from phalanx.blame.quorum import is_minority, odd_ones
from phalanx.model.ranks import name_ranks


@dataclass(frozen=True, slots=True)
class Dissent:
    """Who is odd, if anybody is, and the words for both sides."""

    culprits: frozenset[int]
    text: str  # `different roots of broadcast at train.py:40: rank 1 names 1, ranks 0, 2, 3 name 0`
    reason: str  # root, name, address, aside, chosen, ahead, skipped, extra, serving
    fields: Mapping[str, Any] = field(default_factory=dict)  # of the stall's fact


def differs(told: Mapping[int, str]) -> bool:
    """Whether ranks differ at all."""
    return len(set(told.values())) > 1


def odd_of(told: Mapping[int, str], size: int) -> frozenset[int]:
    """Those that differ from most; nobody where as many are on another side, or where they are half of the job or more."""
    odd = odd_ones(told, told)
    return odd if is_minority(odd, range(size)) else frozenset()


def sides_of(told: Mapping[int, str], one: str, many: str) -> str:
    """`rank 1 names 1, ranks 0, 2, 3 name 0`, the fewest first."""
    return ", ".join(each_side(told, one, many))


def each_side(told: Mapping[int, str], one: str, many: str) -> list[str]:
    """The same, one text a side."""
    sides: dict[str, list[int]] = {}
    for rank, value in sorted(told.items()):
        sides.setdefault(value, []).append(rank)
    ordered = sorted(sides.items(), key=lambda side: (len(side[1]), side[0]))
    return [f"{name_ranks(who)} {one if len(who) == 1 else many} {value}" for value, who in ordered]
