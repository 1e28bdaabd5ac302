"""Observations that travel: between processes of this machine, or as JSON between machines. Only values of known types are taken in.

Events make the lines around them, and their true line numbers, when they are asked to, from the file. That is done before they travel.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache, partial
from typing import Any

from phalanx.model import Event, EventKind, Frame, Unchecked
from phalanx.model.fact import Fact
from phalanx.sources.metrics import Metrics, Reading
from phalanx.sources.observations import Match, Observations
from phalanx.sources.survey import FileSurvey, RankSurvey

_KINDS = (Observations, Event, Frame, Fact, Match, FileSurvey, RankSurvey, Metrics, Unchecked)
_CALLABLE = ("context", "true_line")
_KIND = "~"  # the key that names a value's type in JSON


def _given(value: Any, *_: Any) -> Any:
    return value


def settled(seen: Observations) -> Observations:
    """The same, with what events would have read from their files later."""
    known: dict[int, Event] = {}

    def settle(event: Event) -> Event:
        if id(event) not in known:
            around, line = event.context(), event.true_line(event.line)
            known[id(event)] = replace(event, context=partial(_given, around), true_line=partial(_given, line))
        return known[id(event)]

    matches = [replace(match, event=settle(match.event)) for match in seen.matches]
    return Observations([settle(event) for event in seen.events], matches, seen.files, seen.unchecked)


def joined(parts: Iterable[Observations], names: Sequence[str]) -> Observations:
    """What was read apart as if it had been read together, in the order of these names."""
    order = {name: number for number, name in enumerate(names)}
    found = Observations()
    for part in parts:
        found.events += part.events
        found.matches += part.matches
        found.files += part.files
        found.unchecked += part.unchecked
    last = len(order)
    found.events.sort(key=lambda event: order.get(event.file, last))
    found.matches.sort(key=lambda match: order.get(match.event.file, last))
    found.files.sort(key=lambda file: order.get(file.name, last))
    return found


def to_json(value: Any) -> Any:
    """Settled observations as what JSON knows."""
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, Enum):
        return {_KIND: "EventKind", "v": value.value}
    if is_dataclass(value) and not isinstance(value, type):
        return {_KIND: type(value).__name__, "v": {one.name: _field(value, one.name) for one in fields(value)}}
    if isinstance(value, dict):
        kind = "Counter" if isinstance(value, Counter) else "dict"
        return {_KIND: kind, "v": [[to_json(key), to_json(item)] for key, item in value.items()]}
    if isinstance(value, tuple | set | frozenset | deque):
        kind = type(value).__name__
        return {_KIND: kind, "v": [to_json(item) for item in value], "most": getattr(value, "maxlen", None)}
    raise TypeError(f"{type(value).__name__} does not travel")


def _field(value: Any, name: str) -> Any:
    return to_json(
        getattr(value, name).args[0] if isinstance(value, Event) and name in _CALLABLE else getattr(value, name)
    )


def from_json(data: Any) -> Any:
    """The value again. Raises ValueError for what is none of ours."""
    if isinstance(data, list):
        return [from_json(item) for item in data]
    if not isinstance(data, dict):
        return data
    make = _makers().get(str(data.get(_KIND)))
    if make is None:
        raise ValueError(f"an unknown kind of value: {str(data.get(_KIND))[:40]!r}")
    try:
        return make(data)
    except (KeyError, TypeError) as error:
        raise ValueError(f"a damaged {data[_KIND]}: {error}") from None


@cache
def _makers() -> dict[str, Callable[[dict[str, Any]], Any]]:
    def items(data: dict[str, Any]) -> list[Any]:
        return [from_json(item) for item in data["v"]]

    def pairs(data: dict[str, Any]) -> dict[Any, Any]:
        return {from_json(key): from_json(item) for key, item in data["v"]}

    def made(kind: type[Any], data: dict[str, Any]) -> Any:
        known = {name: from_json(item) for name, item in data["v"].items()}
        if kind is Event:
            known |= {name: partial(_given, known[name]) for name in _CALLABLE}
        return kind(**known)

    return {
        "tuple": lambda data: tuple(items(data)),
        "set": lambda data: set(items(data)),
        "frozenset": lambda data: frozenset(items(data)),
        "deque": lambda data: deque(items(data), maxlen=data["most"]),
        "dict": pairs,
        "Counter": lambda data: Counter(pairs(data)),
        "Reading": lambda data: Reading(*items(data)),
        "EventKind": lambda data: EventKind(data["v"]),
        **{kind.__name__: partial(made, kind) for kind in _KINDS},
    }
