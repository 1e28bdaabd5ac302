"""What the traces show, in one sentence each: who, in which call of which group, and who waits for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from phalanx.model.ranks import name_ranks


class Break(StrEnum):
    """The ways in which a rank breaks formation; each has a rule of its own."""

    NO_TRACE = "no-trace"
    CUT_TRACE = "cut-trace"
    HOST = "host-stall"
    DEVICE = "device-stall"
    NETWORK = "network-stall"
    UNCONNECTED = "never-connected"
    ORDER = "other-order"
    PARTNER = "no-partner"
    CYCLE = "cycle"
    MISMATCH = "mismatch"
    STRAGGLER = "straggler"


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing that is wrong. `ranks` are the accused: empty where nobody stands out."""

    kind: Break
    text: str  # begins with `collective trace: `, and is worded as the rules expect it
    ranks: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    place: str | None = None  # where the accused called, else where the waiting ones did
    shown_by: int | None = None  # a rank in whose trace it shows
    is_past: bool = False  # the ranks went on long after it


def sentence(words: str) -> str:
    """A text as the rules look for it."""
    return f"collective trace: {' '.join(words.split())}"


def named(ranks: Iterable[int]) -> str:
    """`rank 2`, `ranks 0, 1`, `ranks 0-254`."""
    return name_ranks(ranks)
