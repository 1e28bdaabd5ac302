"""What is looked for in the inputs, and what was found there."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from phalanx.model import Event, Unchecked
from phalanx.sources.scanner import LiteralsBy, Needle
from phalanx.sources.survey import FileSurvey


class Searchable(Protocol):
    """A regular expression, compiled or not yet."""

    @property
    def pattern(self) -> str:
        """Its text."""

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in the text."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A line to look for. `key` is the asker's own; one of `literals` stands in every match."""

    key: Hashable
    expression: Searchable
    literals: frozenset[str]
    ignores_case: bool = False
    is_common: bool = False  # its literals stand in healthy lines too: look for the whole expression
    once: bool = False  # that it is there is all that matters, not how often or where
    literals_by: LiteralsBy | None = None  # its literals, chosen by what is common in the logs at hand


@dataclass(frozen=True, slots=True)
class Match:
    """A line or an exception's message that a pattern matched."""

    key: Hashable
    event: Event
    captures: Mapping[str, str]
    after_progress: bool = False


def needles_of(pattern: Pattern, refused: Collection[str]) -> list[Needle]:
    """The pattern's literals; the whole expression where they are common."""
    text = pattern.expression.pattern
    if pattern.is_common and text not in refused:
        return [Needle(text, True, pattern.ignores_case, pattern.once, pattern.literals, pattern.literals_by)]
    return [Needle(literal, False, pattern.ignores_case, pattern.once) for literal in sorted(pattern.literals)]


def captures_of(match: re.Match[str]) -> dict[str, str]:
    """The groups of a match that took part in it."""
    return {name: value for name, value in match.groupdict().items() if value is not None}


@dataclass(slots=True)
class Observations:
    """Everything that was read."""

    events: list[Event] = field(default_factory=list)
    matches: list[Match] = field(default_factory=list)
    files: list[FileSurvey] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)
