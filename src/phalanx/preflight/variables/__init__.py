"""What the libraries read: one table a library, as shipped, and beside it what the installed binaries hold.

A table has `library`, `told_by` (where it is from), `prefixes`, `names`, and may have `integers` (read by strtoll or strtol
without a look at where the number ends), `choices` (the only values), `components` (parts of lists), `elsewhere` (names that others use).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Table:
    """What one library reads."""

    library: str
    told_by: str
    prefixes: tuple[str, ...]
    names: frozenset[str]
    integers: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    components: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of which a value is a list


@cache
def load_tables() -> tuple[Table, ...]:
    """Every table that is shipped."""
    folder = resources.files(__package__)
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    return tuple(_table(tomllib.loads(file.read_text(encoding="utf-8"))) for file in files)


def _table(loaded: dict[str, object]) -> Table:
    def listed(name: str) -> list[str]:
        found = loaded.get(name, [])
        return [str(item) for item in found] if isinstance(found, list) else []

    def words(name: str) -> dict[str, tuple[str, ...]]:
        found = loaded.get(name, {})
        return {name: tuple(values) for name, values in found.items()} if isinstance(found, dict) else {}

    return Table(
        library=str(loaded["library"]),
        told_by=str(loaded["told_by"]),
        prefixes=tuple(listed("prefixes")),
        names=frozenset(listed("names")),
        integers=frozenset(listed("integers")),
        elsewhere=frozenset(listed("elsewhere")),
        choices=words("choices"),
        components=words("components"),
    )


@cache
def known_names() -> dict[str, str]:
    """Every name that is read by something, and by what."""
    found: dict[str, str] = {}
    for table in load_tables():
        for name in table.names:
            if name not in found or name.startswith(table.prefixes):  # some libraries read another one's too
                found[name] = table.library
    return found


@cache
def other_names() -> frozenset[str]:
    """Names that nothing here reads, and that are no mistake."""
    return frozenset(name for table in load_tables() for name in table.elsewhere)
