"""A lint rule: one file under `rules/<group>/`, found by scanning. Its docstring is its documentation and its test."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from phalanx.model import Confidence

if TYPE_CHECKING:
    from phalanx.lint.context import Context

FOLDER = Path(__file__).parent / "rules"
_WHY = re.compile(r"## Why is this bad\?\n(.*?)\n\n", re.DOTALL)
_EXAMPLE = re.compile(r"```diff\n(.*?)```\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of text: from (line, column) to (line, column), lines from 1, columns in characters from 0."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One place that a rule objects to."""

    node: ast.AST
    message: str
    do: str = ""  # replaces the rule's own advice
    also: tuple[tuple[str, int, str], ...] = ()  # further places: file, line, what is there
    edits: tuple[Edit, ...] = ()  # a safe repair
    confidence: Confidence | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """What every finding of a rule has in common. `code` is never used for another fault again."""

    code: str
    symptom: str
    cause: str
    pattern: str
    do: str
    why: str = ""  # by default the first paragraph of "Why is this bad?"
    confidence: Confidence = Confidence.LIKELY
    default: bool = True  # False: only where `select` names it
    needs: tuple[str, ...] = ()  # words, of which one must be in the file for the rule to be asked
    is_distributed: bool = True


@dataclass(frozen=True, slots=True)
class Loaded:
    """A rule with its check, name and documentation."""

    rule: Rule
    check: Callable[[Context], Iterator[Hit]]
    module: ModuleType = field(repr=False)

    @property
    def name(self) -> str:
        """`rank-conditional-collective`, from the name of the file."""
        return self.module.__name__.rpartition(".")[2].replace("_", "-")

    @property
    def group(self) -> str:
        """The framework, from the name of the folder."""
        return self.module.__name__.split(".")[-2]

    @property
    def documentation(self) -> str:
        """Markdown: what it does, why it is bad, an example, the same corrected."""
        bad, good = self.examples
        shown = f"```python\n{bad}```\nUse instead:\n```python\n{good}```\n"
        return _EXAMPLE.sub(lambda _: shown, self._written)

    @property
    def _written(self) -> str:
        return (self.module.__doc__ or "").strip() + "\n"

    @property
    def why(self) -> str:
        """Why the finding matters, in a sentence or two."""
        found = _WHY.search(self._written)
        return self.rule.why or (" ".join(found[1].split()) if found else "")

    @property
    def title(self) -> str:
        """The first line of the documentation."""
        return self._written.partition("\n")[0]

    @property
    def examples(self) -> tuple[str, str]:
        """The bad and the good script of the documentation."""
        found = _EXAMPLE.findall(self._written)
        if len(found) != 1:
            raise ValueError(f"{self.rule.code}: the documentation needs one example, as a diff from bad to good")
        lines = found[0].splitlines()
        sides = [[line[1:] for line in lines if not line.startswith(dropped)] for dropped in "+-"]
        return "\n".join([*sides[0], ""]), "\n".join([*sides[1], ""])


class RuleClashError(Exception):
    """Two rules with the same code; the message names both files."""


@cache
def load_rules() -> tuple[Loaded, ...]:
    """All rules, by code."""
    found: dict[str, Loaded] = {}
    for path in sorted(FOLDER.glob("*/*.py")):
        if path.name == "__init__.py":
            continue
        module = import_module(f"phalanx.lint.rules.{path.parent.name}.{path.stem}")
        loaded = Loaded(module.RULE, module.check, module)
        other = found.setdefault(loaded.rule.code, loaded)
        if other is not loaded:
            raise RuleClashError(f"{loaded.rule.code} is the code of {other.module.__name__} and {module.__name__}")
    return tuple(found[code] for code in sorted(found))
