"""Fills a rule's texts: `{name}`, `{name|words if missing}`, `{name?words that stand only if {name} is there}`."""

from __future__ import annotations

import re
from collections.abc import Mapping

_FIELD = re.compile(r"\{(?P<name>\w+)(?:\|(?P<otherwise>[^{}]*)|\?(?P<only>(?:[^{}]|\{\w+(?:\|[^{}]*)?\})*))?\}")
_PLACE = re.compile(r"\S+\.\w+:\d")  # a file's name keeps its letters
# Names of hosts, variables and files stand as they are written, at the start of a sentence too.
_AS_WRITTEN = frozenset(
    [
        "address",
        "caller",
        "endpoint",
        "file",
        "files",
        "host",
        "hosts",
        "line",
        "lonely",
        "name",
        "one",
        "other",
        "path",
        "variable",
    ]
)
_LONGEST_VALUE = 200
_ONE_WAITS = re.compile(r"\b([Rr]ank \d+) wait\b")  # where a text says what ranks do, and it is one


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with its fields filled; sentences that begin with a filled field begin with a capital, unless it is a place."""

    def replace(match: re.Match[str]) -> str:
        value = values.get(match["name"], "").strip()[:_LONGEST_VALUE]
        if match["only"] is not None:
            return fill(match["only"], values) if value else ""
        if not value:
            value = match["otherwise"] or ("" if match["otherwise"] is not None else f"({match['name']} unknown)")
        if match["name"] in _AS_WRITTEN:
            return value
        starts_sentence = match.start() == 0 or match.string[: match.start()].endswith((". ", "? ", "! ", ".\n"))
        return value[:1].upper() + value[1:] if starts_sentence and not _PLACE.match(value) else value

    return _ONE_WAITS.sub(r"\1 waits", _FIELD.sub(replace, text))


def fill_without_job(text: str) -> str:
    """The text as a page about the rule shows it, where no job fills the fields: `{culprits|a rank}` reads "a rank"."""
    return _FIELD.sub(
        lambda match: "" if match["only"] is not None else match["otherwise"] or f"‹{match['name']}›", text
    )


def is_complete(text: str, values: Mapping[str, str]) -> bool:
    """Whether every field that has no words for its absence is there."""
    needed = (match["name"] for match in _FIELD.finditer(text) if match["otherwise"] is None and match["only"] is None)
    return all(values.get(name, "").strip() for name in needed)
