"""Values that the library reads as something else without a word: `NCCL_IB_DISABLE=true` is 0."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from phalanx.model import Unchecked
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.lint.misspelt import distance
from phalanx.preflight.options import CheckOptions
from phalanx.preflight.variables import load_tables

_NUMBER = {0: re.compile(r"\s*[+-]?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9]\d*)"), 10: re.compile(r"\s*[+-]?\d+")}
_YES = ("true", "yes", "on", "y", "t", "enable", "enabled")
_UNITS = {
    "k": 1 << 10,
    "kb": 1 << 10,
    "kib": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "mib": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
    "gib": 1 << 30,
}


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Numbers first, then closed lists of words."""
    for table in load_tables():
        base = 0 if table.library == "NCCL" else 10
        for name in sorted(table.integers):
            yield from _reading(all_facts, name, partial(_as_number, base=base), table.library)
        for name, choices in sorted(table.choices.items()):
            yield from _words(all_facts, name, choices, table.library, partial(_as_choice, choices=choices))
        for name, known in sorted(table.components.items()):
            yield from _words(all_facts, name, known, table.library, partial(_as_components, known=known))


def _words(
    all_facts: Sequence[HostFacts],
    name: str,
    known: Sequence[str],
    library: str,
    read: Callable[[str], tuple[str, str] | None],
) -> Iterable[CheckFact]:
    bad: dict[tuple[str, str, str], list[str]] = {}
    for one in all_facts:
        value = one.variable(name)
        if value and (wrong := read(value)) is not None:
            bad.setdefault((value, *wrong), []).append(one.label)
    for (value, part, right), labels in bad.items():
        yield observe(
            "value-not-known",
            tuple(labels),
            name=name,
            value=value,
            part=part or None,
            library=library,
            choices=", ".join(known),
            right=right or None,
            open=not right,
        )


def _as_choice(value: str, choices: Sequence[str]) -> tuple[str, str] | None:
    """Nothing and what was meant, if the value is none of these."""
    word = value.strip("\"'").upper()
    near = [choice for choice in choices if distance(word, choice.upper()) <= 1]
    return None if word in {choice.upper() for choice in choices} else ("", near[0] if len(near) == 1 else "")


def _as_components(value: str, known: Sequence[str]) -> tuple[str, str] | None:
    """The component that is one slip away from a known one, and the value as it was meant."""
    parts = value.strip().lstrip("^").split(",")
    for part in (one for one in parts if one and one not in known):
        near = [one for one in known if distance(part, one) <= (1 if len(one) < 5 else 2)]
        if near:
            return part, re.sub(rf"(?<![\w]){re.escape(part)}(?![\w])", near[0], value)
    return None


def _reading(
    all_facts: Sequence[HostFacts], name: str, read: Callable[[str], int | None], library: str
) -> Iterable[CheckFact]:
    found: dict[tuple[str, int], list[str]] = {}
    for one in all_facts:
        value = one.variable(name)
        if value and (parsed := read(value)) is not None:
            found.setdefault((value, parsed), []).append(one.label)
    for (value, parsed), labels in found.items():
        yield observe(
            "value-misparsed",
            tuple(labels),
            name=name,
            value=value,
            library=library,
            parsed=str(parsed),
            right=_meant(value),
        )


def _as_number(value: str, base: int) -> int | None:
    """What strtoll makes of it, if that is not what stands there; None if it is."""
    match = _NUMBER[base].match(value)
    text = match[0].strip() if match else ""
    if match and match.end() == len(value.rstrip()):
        is_octal = base == 0 and re.fullmatch(r"[+-]?0[0-7]+", text) is not None
        return int(text.lstrip("+").replace("0", "0o", 1), 8) if is_octal and int(text, 10) > 7 else None
    if not text:
        return 0
    if "x" in text.lower():
        return int(text, 16)
    return int(text, 8 if base == 0 and text.lstrip("+-").startswith("0") else 10)


def _meant(value: str) -> str:
    word = value.strip().strip("\"'").lower()
    if word in _YES:
        return "1"
    if match := re.fullmatch(r"(\d+)\s*([kmg]i?b?)", word):
        return str(int(match[1]) * _UNITS[match[2]])
    if match := re.fullmatch(r"\d+", word):
        return match[0]
    return "0" if word in ("false", "no", "off", "n", "f", "none", "disable", "disabled", "") else "a plain number"
