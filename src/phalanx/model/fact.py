"""A fact: one thing that a part of Phalanx has established, as values, never as a sentence that another part takes apart.

Each kind of fact is declared once, in `model/facts/<subject>.py`, with its fields and the sentence that shows it to people.
Rules ask for facts by id; nothing reads the sentence, so it can be reworded at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from phalanx.model.event import EventKind
from phalanx.model.ranks import name_all, name_ranks
from phalanx.model.template import fill

Value = str | int | float | bool | tuple[int, ...] | tuple[str, ...]


class FactError(ValueError):
    """A fact that is not declared, or has other fields than declared."""


@dataclass(frozen=True, slots=True)
class FactType:
    """The declaration of a kind of fact. `fields` maps each name to `str`, `int`, `float`, `bool`, `ranks` or `names` (several)."""

    id: str
    text: str  # with {field}, as in a rule; {ranks} are those the fact is about
    fields: Mapping[str, str] = field(default_factory=dict)
    kind: EventKind = EventKind.LINE  # what sort of observation it is for the history of the job


@dataclass(frozen=True, slots=True)
class Fact:
    """One established thing: `ranks` and `hosts` are those it is about, and whom it would accuse if it accuses anybody."""

    id: str
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    fields: Mapping[str, Value] = field(default_factory=dict)
    source: str = ""  # watch, trace, metric, check …

    def texts(self) -> dict[str, str]:
        """The fields as they read in a sentence; what is empty or false is left out."""
        found = {name: spoken for name, value in self.fields.items() if (spoken := _spoken(value))}
        if self.ranks:
            found.setdefault("ranks", name_ranks(self.ranks))
        if self.hosts:
            found.setdefault("hosts", name_all(self.hosts))
            found.setdefault("host_list", " ".join(self.hosts))  # for a command
        return found

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` reads back."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in self.fields.items()}
        found: dict[str, Any] = {"fact": self.id, "fields": plain}
        if self.ranks:
            found["ranks"] = list(self.ranks)
        if self.hosts:
            found["hosts"] = list(self.hosts)
        return found


def describe(fact: Fact, declared: FactType) -> str:
    """The sentence that shows a fact to people."""
    return fill(declared.text, fact.texts())


def _spoken(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        numbers = [item for item in value if isinstance(item, int)]
        return name_ranks(numbers) if numbers else ", ".join(map(str, value))
    return str(value)
