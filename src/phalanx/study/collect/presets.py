"""What to collect: presets shipped as TOML, presets of the user's own, and single repositories."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from phalanx.study.errors import StudyError

_KEYS = frozenset(["repositories", "keywords", "discussions", "site", "tags"])
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Preset:
    """A query: which places are read, and which of their posts count."""

    name: str
    repositories: tuple[str, ...] = ()
    discussions: bool = False
    site: str = ""
    tags: tuple[str, ...] = ()
    keywords: re.Pattern[str] | None = None

    def wants(self, title: str, body: str) -> bool:
        """Whether a post's own words are what is asked for."""
        return self.keywords is None or bool(self.keywords.search(title) or self.keywords.search(body))


def load_presets(own: Path | None = None) -> dict[str, Preset]:
    """The shipped presets, and those of the user's own file."""
    shipped = resources.files("phalanx.study.collect").joinpath("presets.toml").read_text(encoding="utf-8")
    presets = _parse(tomllib.loads(shipped), "presets.toml")
    if own is not None:
        try:
            presets |= _parse(tomllib.loads(own.read_text(encoding="utf-8")), str(own))
        except (OSError, UnicodeDecodeError) as error:
            raise StudyError(f"{own}: cannot be read ({error}).") from error
        except tomllib.TOMLDecodeError as error:
            raise StudyError(f"{own}: not TOML ({error}). docs/study.md shows a preset.") from error
    return presets


def pick(
    names: list[str], repositories: list[str], keywords: str | None, discussions: bool, own: Path | None
) -> list[Preset]:
    """The presets that a command line names; repositories given by hand make one more."""
    known = load_presets(own)
    for name in names:
        if name not in known:
            raise StudyError(
                f"there is no preset {name!r}; known are {', '.join(known)}. Name a repository with --repo OWNER/NAME."
            )
    chosen = [known[name] for name in names]
    if repositories:
        chosen.append(make_preset("own", {"repositories": repositories, "discussions": discussions}, "--repo"))
    if keywords is not None:
        pattern = _compile(keywords, "--keywords")
        chosen = [Preset(one.name, one.repositories, one.discussions, one.site, one.tags, pattern) for one in chosen]
    return chosen


def _parse(document: Mapping[str, Any], file: str) -> dict[str, Preset]:
    return {name: make_preset(name, table, f"{file}, [{name}]") for name, table in document.items()}


def make_preset(name: str, table: object, place: str) -> Preset:
    """Check one preset; what is wrong with it is said with its place."""
    if not isinstance(table, dict):
        raise StudyError(f"{place}: expected a table like [{name}] with `repositories` or `site` in it.")
    unknown = table.keys() - _KEYS
    if unknown:
        raise StudyError(f"{place}: unknown key {', '.join(sorted(unknown))}; known are {', '.join(sorted(_KEYS))}.")
    repositories = tuple(table.get("repositories", ()))
    for repository in repositories:
        if not isinstance(repository, str) or not _REPOSITORY.fullmatch(repository):
            raise StudyError(f"{place}: {repository!r} is no repository. Give it as OWNER/NAME.")
    if not repositories and not table.get("site"):
        raise StudyError(f"{place}: needs `repositories` or `site`.")
    keywords = table.get("keywords")
    return Preset(
        name=name,
        repositories=repositories,
        discussions=bool(table.get("discussions", False)),
        site=str(table.get("site", "")),
        tags=tuple(str(tag) for tag in table.get("tags", ())),
        keywords=_compile(keywords, place) if keywords else None,
    )


def _compile(expression: str, place: str) -> re.Pattern[str]:
    try:
        return re.compile(expression, re.IGNORECASE)
    except re.error as error:
        raise StudyError(f"{place}: keywords {expression!r} is no regular expression ({error}).") from error
