"""Collects the rules: every file under `rules/`, and packs of third parties by entry point."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from phalanx import cache
from phalanx.knowledge import stored
from phalanx.knowledge.rule import Rule, RuleError

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


@functools.cache
def load_bare_rules() -> tuple[Rule, ...]:
    """All active rules without their `sections` and `cases`, which no diagnosis needs and which are most of the text."""
    return tuple(rule for rule in _stored_pack(rule_folders(), is_bare=True).rules if rule.is_active)


def removed_codes() -> frozenset[str]:
    """Codes of rules that are no more, which no new rule may have."""
    return frozenset(rule.code for rule in _stored_pack(rule_folders(), is_bare=True).rules if not rule.is_active)


def rule_folders() -> list[Path]:
    """The built-in folder, then those of packages that name themselves in the group `phalanx.rules`.

    Rules are data: such a package is found, not imported, so loading its rules runs none of its code.
    """
    folders = [BUILT_IN]
    for package in _named_packages():
        spec = find_spec(package)
        folders.extend(Path(place) for place in (spec.submodule_search_locations if spec else None) or ())
    return folders


def _named_packages() -> list[str]:
    """Packages with rules. Asking every installed package takes longer than a diagnosis, so the answer is kept until
    something is installed or removed, which changes one of the folders that Python looks in."""
    key = cache.key_of([sys.version, *(_state(path) for path in sys.path)])
    kept = cache.load("packs", key)
    if kept is not None:
        with suppress(ValueError):
            names = json.loads(kept)
            if isinstance(names, list):
                return [str(name) for name in names]
    from importlib.metadata import entry_points

    values = [point.value for point in entry_points(group=ENTRY_POINT_GROUP)]
    names = [value.split(":", 1)[0].split(".", 1)[0] for value in values]
    cache.save("packs", key, json.dumps(names).encode())
    return names


def _state(path: str) -> str:
    """What changes when the file is written anew, or when something is put into or taken out of the folder."""
    try:
        status = os.stat(path or ".")  # noqa: PTH116, of many files: a Path for each would take longer
    except OSError:
        return f"{path} is not there"
    return f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def _stored_pack(folders: Sequence[Path], is_bare: bool = False) -> RulePack:
    """The rules below these folders, parsed only if a file of them, or how they are parsed, has changed."""
    files = [file for folder in (_PARSER, *folders) for file in _files_below(str(folder))]
    key = cache.key_of([sys.version, stored.shape(), *map(_state, files)])
    kept = cache.load("rules", key)
    prose = None if is_bare or kept is None else cache.load("prose", key)
    if kept is not None and (is_bare or prose is not None):
        with suppress(ValueError, KeyError, TypeError, IndexError):
            rules, problems = stored.from_json(kept, prose)
            return RulePack(tuple(rules), tuple(problems))
    pack = load_folders(folders)
    kept, prose = stored.to_json(pack.rules, pack.problems)
    cache.save("rules", key, kept)
    cache.save("prose", key, prose)
    return pack if not is_bare else RulePack(tuple(stored.from_json(kept)[0]), pack.problems)


def _files_below(folder: str) -> Iterator[str]:
    for top, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (f"{top}/{name}" for name in sorted(files))


def _rule_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.md"))


def load_folders(folders: Sequence[Path]) -> RulePack:
    """The rules below these folders. A code is used once, for ever: of two files with one code the first stands."""
    from phalanx.knowledge.loader import load_rule  # seldom needed: what was parsed is kept

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
