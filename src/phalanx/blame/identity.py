"""Joins the names that a rank goes by (process id, pod, device address, local rank on a host) to its global rank.

A local rank, a device index, a node's number or a pod's name is not a global rank. It stands for one only where some line
says so, and only if all lines that do agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Alias(StrEnum):
    """What a rank can be called by; the key is a text within its kind."""

    PID = "pid"  # `4242`, or `host:4242` where the host is known
    POD = "pod"  # `job-worker-2`
    DEVICE = "device"  # `node0/0000:3b:00.0`
    LOCAL = "local"  # `node0:2`


@dataclass(frozen=True, slots=True)
class Identities:
    """Which global rank each alias stands for; aliases that lines give to several ranks stand for none."""

    ranks: Mapping[tuple[Alias, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, told: Iterable[tuple[Alias, str, int]]) -> Identities:
        """From what single lines tell: kind, key and global rank."""
        owners: dict[tuple[Alias, str], set[int]] = {}
        for alias, key, rank in told:
            owners.setdefault((alias, key), set()).add(rank)
        return cls({name: next(iter(ranks)) for name, ranks in owners.items() if len(ranks) == 1})

    def rank(self, alias: Alias, key: str) -> int | None:
        """The global rank, or None where nothing tells it without contradiction."""
        return self.ranks.get((alias, key))

    def rank_of_any(self, alias: Alias, keys: Iterable[str]) -> int | None:
        """The one rank that these keys stand for; None if they stand for none or several."""
        found = {rank for key in keys if (rank := self.rank(alias, key)) is not None}
        return found.pop() if len(found) == 1 else None
