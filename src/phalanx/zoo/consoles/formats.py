"""The programs' own format strings, with source file and release, read from `formats/*.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, TypeVar

T = TypeVar("T")
_NOT_TEXTS = ("source", "at")


@dataclass(frozen=True, slots=True)
class Format:
    """One statement of a program: where it is in the source, and its text by the release that first has it."""

    name: str
    source: str
    texts: dict[tuple[int, ...], str]
    lines: dict[tuple[int, ...], int]

    def text(self, release: str) -> str:
        """The text in that release; empty where the release does not print it."""
        return _newest(self.texts, release, "")

    def line(self, release: str) -> int:
        """The statement's line in the source file of that release, 0 where it is not noted."""
        return _newest(self.lines, release, 0)


def _number(release: str) -> tuple[int, ...]:
    return () if release == "any" else tuple(int(part) for part in release.split("."))


def _newest(by_release: dict[tuple[int, ...], T], release: str, default: T) -> T:
    wanted = _number(release)
    had = [number for number in by_release if number <= wanted]
    return by_release[max(had)] if had else default


@cache
def formats(program: str) -> dict[str, Format]:
    """All formats of a program (`torch`, `nccl`, `kernel`, `launchers`) by their dotted names."""
    file = resources.files("phalanx.zoo.consoles") / "formats" / f"{program}.toml"
    found: dict[str, Format] = {}
    _collect(tomllib.loads(file.read_text(encoding="utf-8")), "", found)
    return found


def _collect(table: dict[str, Any], prefix: str, found: dict[str, Format]) -> None:
    for key, value in table.items():
        name = f"{prefix}{key}"
        if "source" not in value:
            _collect(value, f"{name}.", found)
            continue
        found[name] = Format(
            name,
            value["source"],
            {_number(release): text for release, text in value.items() if release not in _NOT_TEXTS},
            {_number(release): line for release, line in value.get("at", {}).items()},
        )


def render(program: str, name: str, release: str, /, **fields: Any) -> str:
    """The statement's text in that release with its fields filled in; empty where the release does not print it."""
    return formats(program)[name].text(release).format(**fields)
