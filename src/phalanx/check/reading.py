"""What a probe saw that is not as it should be: one sentence, which a rule of the knowledge explains, and who is concerned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# What the network probes may prove; a fact that looks wrong is then no fault.
STORE_CALLED, STORE_REACHED = "the store's port was called", "every host reached the store"


@dataclass(frozen=True, slots=True)
class Reading:
    """A sentence that opens with `check: `, matched by a rule's expression; labels of parties; more values for its texts."""

    text: str
    accused: tuple[str, ...] = ()
    harmed: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    said: tuple[tuple[str, str], ...] = ()  # further evidence: label, what was seen there
    unless: str = ""  # what, if the network shows it, makes this no fault
