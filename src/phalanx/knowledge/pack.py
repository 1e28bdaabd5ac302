"""Collects the rules: every file under `rules/`, and packs of third parties by entry point."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from phalanx import cache
from phalanx.knowledge import stored
from phalanx.knowledge.loader import RuleError, load_rule
from phalanx.knowledge.rule import Rule

_PARSER = Path(__file__).parent
BUILT_IN = _PARSER / "rules"
ENTRY_POINT_GROUP = "phalanx.rules"


@dataclass(frozen=True, slots=True)
class RulePack:
    """The rules that could be loaded, and what is wrong with those that could not."""

    rules: tuple[Rule, ...]
    problems: tuple[str, ...]


@functools.cache
def load_pack() -> RulePack:
    """All active rules, in order of code. A bad file costs that file, never a diagnosis."""
    pack = _stored_pack(rule_folders())
    return RulePack(tuple(rule for rule in pack.rules if rule.is_active), pack.problems)


def load_rules() -> tuple[Rule, ...]:
    """All active rules that could be loaded."""
    return load_pack().rules


def rule_folders() -> list[Path]:
    """The built-in folder, then those of packages that name themselves in the group `phalanx.rules`.

    Rules are data: such a package is found, not imported, so loading its rules runs none of its code.
    """
    folders = [BUILT_IN]
    for point in entry_points(group=ENTRY_POINT_GROUP):
        spec = find_spec(point.value.split(":", 1)[0].split(".", 1)[0])
        folders.extend(Path(place) for place in (spec.submodule_search_locations if spec else None) or ())
    return folders


def _stored_pack(folders: Sequence[Path]) -> RulePack:
    """The rules below these folders, parsed only if a file of them, or how they are parsed, has changed."""
    paths = [path for folder in folders for path in _rule_files(folder)]
    try:
        parts = [part for path in (*_PARSER.glob("*.py"), *paths) for part in (str(path), path.read_bytes())]
    except OSError:
        return load_folders(folders)
    key = cache.key_of([sys.version, stored.shape(), *parts])
    kept = cache.load("rules", key)
    if kept is not None:
        with suppress(ValueError, KeyError, TypeError):
            rules, problems = stored.from_json(kept)
            return RulePack(tuple(rules), tuple(problems))
    pack = load_folders(folders)
    cache.save("rules", key, stored.to_json(pack.rules, pack.problems))
    return pack


def _rule_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.md"))


def load_folders(folders: Sequence[Path]) -> RulePack:
    """The rules below these folders. A code is used once, for ever: of two files with one code the first stands."""
    by_code: dict[str, Rule] = {}
    problems: list[str] = []
    for path in (path for folder in folders for path in _rule_files(folder)):
        try:
            rule = load_rule(path)
        except (RuleError, OSError, UnicodeDecodeError) as error:
            problems.append(str(error))
            continue
        if rule.code in by_code:
            problems.append(f"{path}: code {rule.code} is also that of {by_code[rule.code].path}; choose another")
            continue
        by_code[rule.code] = rule
    for rule in by_code.values():
        unknown = sorted(rule.overlaps - by_code.keys())
        if unknown:
            problems.append(f"{rule.path}: overlaps names {', '.join(unknown)}, which no rule has")
    return RulePack(tuple(by_code[code] for code in sorted(by_code)), tuple(problems))
