"""Fills a rule's texts: `{name}`, `{name|words if missing}`, `{name?words that stand only if {name} is there}`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_FIELD = re.compile(r"\{(?P<name>\w+)(?:\|(?P<otherwise>[^{}]*)|\?(?P<only>(?:[^{}]|\{\w+\})*))?\}")
_LONGEST_VALUE = 200


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with its fields filled; sentences that begin with a filled field begin with a capital."""

    def replace(match: re.Match[str]) -> str:
        value = values.get(match["name"], "").strip()[:_LONGEST_VALUE]
        if match["only"] is not None:
            return fill(match["only"], values) if value else ""
        if not value:
            value = match["otherwise"] or ("" if match["otherwise"] is not None else f"({match['name']} unknown)")
        starts_sentence = match.start() == 0 or match.string[: match.start()].endswith((". ", "? ", "! ", ".\n"))
        return value[:1].upper() + value[1:] if starts_sentence else value

    return _FIELD.sub(replace, text)


def name_ranks(ranks: Iterable[int]) -> str:
    """`rank 2`, `ranks 0, 1, 3`, `ranks 0-254`; empty if there are none."""
    numbers = sorted(set(ranks))
    if not numbers:
        return ""
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    parts = []
    for first, last in spans:
        parts.extend([f"{first}-{last}"] if last - first >= 3 else [str(n) for n in range(first, last + 1)])
    shown = parts if len(parts) <= 12 else [*parts[:12], f"… ({len(numbers)} in all)"]
    return "ranks " + ", ".join(shown)
