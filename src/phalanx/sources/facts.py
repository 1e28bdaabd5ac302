"""Facts as observations: the event that carries one, and files of them (`facts.jsonl`, one JSON object a line).

{"fact": "metric.vanishes", "ranks": [2], "fields": {"metric": "learning rate", "first": "0.1", "last": "1e-12"}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from phalanx.model import Event, Frame
from phalanx.model.fact import Fact
from phalanx.model.facts import fact_from_json, fact_types, sentence_of
from phalanx.sources.text import clean_text

FILE = "facts.jsonl"


def fact_event(
    fact: Fact,
    file: str,
    line: int = 0,
    rank: int | None = None,
    frames: tuple[Frame, ...] = (),
    data: Mapping[str, Any] | None = None,
) -> Event:
    """The observation of a fact. `rank` is in whose output or trace it shows, which need not be whom it is about."""
    text = clean_text(sentence_of(fact))
    kind = fact_types()[fact.id].kind
    return Event(kind, text, file, line, rank, source=fact.source, frames=frames, data=data or {}, fact=fact)


def read_facts(name: str, text: str) -> list[Event]:
    """The facts of a file; a line that is none, or was cut off, is left out."""
    events = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            item = json.loads(line)
        except (ValueError, RecursionError):
            continue
        fact = fact_from_json(item, str(item.get("source", "facts")) if isinstance(item, dict) else "")
        if fact is not None:
            rank = item.get("rank")
            events.append(fact_event(fact, name, number, rank if isinstance(rank, int) else None))
    return events


def is_facts(name: str) -> bool:
    """Whether a file holds facts, by its name."""
    return name.rsplit("/", 1)[-1] == FILE
