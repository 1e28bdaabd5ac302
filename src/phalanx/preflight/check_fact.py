"""What a probe established, as a fact: its fields, who is concerned, and how sure it is. A rule explains it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from phalanx.model.fact import Fact
from phalanx.model.facts import make_fact

# What the network probes may prove; a fact that looks wrong is then no fault.
STORE_CALLED, STORE_REACHED = "store-called", "store-reached"


@dataclass(frozen=True, slots=True)
class CheckFact:
    """A fact about targets; `fact.hosts` are the labels of those that it accuses."""

    fact: Fact
    harmed: tuple[str, ...] = ()  # labels
    evidence: tuple[tuple[str, str], ...] = ()  # further: label, what was seen there
    unless: str = ""  # what, if the network shows it, makes this no fault
    confidence: str = ""  # in place of the rule's
    by_luck: bool = False  # the job may work all the same
    own: frozenset[str] = frozenset()  # fields that are each host's own: several hosts are one finding all the same

    @property
    def accused(self) -> tuple[str, ...]:
        """Labels of the targets that are wrong."""
        return self.fact.hosts


def observe(
    name: str,
    /,
    accused: tuple[str, ...] = (),
    harmed: tuple[str, ...] = (),
    *,
    evidence: tuple[tuple[str, str], ...] = (),
    unless: str = "",
    confidence: str = "",
    by_luck: bool = False,
    own: Iterable[str] = (),
    **fields: Any,
) -> CheckFact:
    """A fact `check.<name>` with these fields; a field that is None is left out."""
    made = make_fact(f"check.{name}", fields, hosts=accused, source="check")
    return CheckFact(made, harmed, evidence, unless, confidence, by_luck, frozenset(own))
