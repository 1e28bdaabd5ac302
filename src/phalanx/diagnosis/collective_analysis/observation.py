"""What the traces show, as a fact each: who, in which call of which group, and who waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from phalanx.model.fact import Fact
from phalanx.model.facts import make_fact, sentence_of


class Break(StrEnum):
    """The ways in which a rank breaks formation: the ids of their facts, for each of which there is a rule."""

    NO_TRACE = "trace.missing"
    GONE = "trace.gone"
    CUT_TRACE = "trace.cut"
    HOST = "trace.host-stalled"
    DEVICE = "trace.device-stalled"
    NETWORK = "trace.network-stalled"
    UNCONNECTED = "trace.never-connected"
    ORDER = "trace.other-call"
    PARTNER = "trace.no-partner"
    CYCLE = "trace.cycle"
    MISMATCH = "trace.mismatch"
    STRAGGLER = "trace.straggler"


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing that is wrong. The fact's ranks are the accused: none where nobody stands out."""

    fact: Fact
    waiting: tuple[int, ...] = ()
    place: str | None = None  # where the accused called, else where the waiting ones did
    shown_by: int | None = None  # a rank in whose trace it shows
    is_past: bool = False  # the ranks went on long after it

    @property
    def kind(self) -> Break:
        """In what way formation was broken."""
        return Break(self.fact.id)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The accused."""
        return self.fact.ranks

    @property
    def text(self) -> str:
        """The sentence that shows it."""
        return sentence_of(self.fact)


def observation(
    kind: Break,
    ranks: tuple[int, ...] = (),
    waiting: tuple[int, ...] = (),
    place: str | None = None,
    shown_by: int | None = None,
    **fields: Any,
) -> Observation:
    """With its fact made from the fields."""
    fact = make_fact(kind.value, {**fields, "waiting": waiting}, ranks=ranks, source="trace")
    return Observation(fact, waiting, place, shown_by)
