"""What a probe saw that is not as it should be: one sentence, which a rule of the knowledge explains, and who is concerned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Reading:
    """A sentence that opens with `check: `, matched by a rule's expression; labels of parties; more values for its texts."""

    text: str
    accused: tuple[str, ...] = ()
    harmed: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    said: tuple[tuple[str, str], ...] = ()  # further evidence: label, what was seen there
