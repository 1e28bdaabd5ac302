"""Which rules apply where: `[tool.phalanx.check]` in pyproject.toml, and `# phalanx: ignore[CODE]` in a file."""

from __future__ import annotations

import fnmatch
import io
import re
import tokenize
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from phalanx.lint.rule import Loaded
from phalanx.lint.tree import Module

_IGNORE = re.compile(r"#\s*phalanx:\s*ignore(?P<file>-file)?(?:\[(?P<codes>[^\]]*)\])?")
_KEYS = {"select", "ignore", "extend-select", "exclude", "per-file"}


class SettingsError(Exception):
    """A setting that cannot be used; the message names the file and the key."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Codes, prefixes of codes, groups or `ALL`."""

    select: tuple[str, ...] = ()
    extend: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()
    root: Path = field(default_factory=Path)

    def applies(self, rule: Loaded, path: Path) -> bool:
        """Whether a rule is asked about a file."""
        chosen = _matches(rule, self.select) if self.select else rule.rule.default
        chosen = chosen or _matches(rule, self.extend)
        if not chosen or _matches(rule, self.ignore):
            return False
        return not any(_matches(rule, codes) for pattern, codes in self.per_file if self._is(path, pattern))

    def excludes(self, path: Path) -> bool:
        """Whether a file that a folder was searched for is left out."""
        return any(self._is(path, pattern) for pattern in self.exclude)

    def _is(self, path: Path, pattern: str) -> bool:
        try:
            inner = path.absolute().relative_to(self.root.absolute()).as_posix()
        except ValueError:
            inner = path.as_posix()
        return (
            fnmatch.fnmatch(inner, pattern)
            or fnmatch.fnmatch(path.name, pattern)
            or inner.startswith(pattern.rstrip("/") + "/")
        )


def _matches(rule: Loaded, words: tuple[str, ...]) -> bool:
    return any(
        word == "ALL" or rule.rule.code.startswith(word) or word.lower() in (rule.group, rule.name) for word in words
    )


def find_settings(start: Path) -> Settings:
    """The settings of the nearest pyproject.toml that has a table for them."""
    folder = (start if start.is_dir() else start.parent).absolute()
    for parent in (folder, *folder.parents):
        path = parent / "pyproject.toml"
        if path.is_file():
            try:
                table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("phalanx", {}).get("check")
            except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise SettingsError(f"{path}: {error}") from error
            if table is not None:
                return _from_table(table, path)
    return Settings()


def _from_table(table: dict[str, object], path: Path) -> Settings:
    unknown = sorted(set(table) - _KEYS)
    if unknown:
        raise SettingsError(
            f"{path}: [tool.phalanx.check] has no key {unknown[0]!r}; it has {', '.join(sorted(_KEYS))}"
        )
    per_file = table.get("per-file", {})
    if not isinstance(per_file, dict):
        raise SettingsError(f"{path}: tool.phalanx.check.per-file must be a table of patterns and lists of codes")
    return Settings(
        select=_words(table, "select", path),
        extend=_words(table, "extend-select", path),
        ignore=_words(table, "ignore", path),
        exclude=_words(table, "exclude", path),
        per_file=tuple((pattern, _words(per_file, pattern, path)) for pattern in per_file),
        root=path.parent,
    )


def _words(table: dict[str, object], key: str, path: Path) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SettingsError(f"{path}: tool.phalanx.check.{key} must be a list of strings")
    return tuple(value)


class Suppressions:
    """The comments of one file. A comment holds for its own line, or for the statement that ends there."""

    def __init__(self, module: Module) -> None:
        self._by_line: dict[int, set[str]] = {}
        self._file: set[str] = set()
        if "phalanx:" not in module.source.text:
            return
        try:
            for token in tokenize.generate_tokens(io.StringIO(module.source.text).readline):
                if token.type == tokenize.COMMENT and (found := _IGNORE.search(token.string)):
                    codes = {part.strip().upper() for part in (found["codes"] or "ALL").split(",")}
                    self._by_line.setdefault(token.start[0], set()).update(codes)
                    if found["file"]:
                        self._file |= codes
        except (tokenize.TokenError, IndentationError, SyntaxError):
            return

    def covers(self, code: str, first: int, last: int) -> bool:
        """Whether a finding on these lines is suppressed."""
        lines = (codes for line, codes in self._by_line.items() if first <= line <= last)
        return any(code in codes or "ALL" in codes for codes in (self._file, *lines))
