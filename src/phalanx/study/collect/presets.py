"""What to collect: presets shipped as TOML, presets of the user's own, and single repositories."""

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from phalanx.study.collect.post import Post
from phalanx.study.errors import StudyError

_LISTS = ("repositories", "tags", "whole_tags", "labels", "without_labels")
_SWITCHES = ("discussions", "settled", "prose")
_KEYS = frozenset(["keywords", "site", *_LISTS, *_SWITCHES])
_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Preset:
    """A query: which places are read, and which of their posts count.

    `settled` asks for closed issues, and for questions with an accepted answer. One of `labels` must be there, none of
    `without_labels`. A question with one of `whole_tags` counts whatever its words are. `prose` leaves code blocks out.
    """

    name: str
    repositories: tuple[str, ...] = ()
    discussions: bool = False
    site: str = ""
    tags: tuple[str, ...] = ()
    keywords: re.Pattern[str] | None = None
    settled: bool = False
    labels: tuple[str, ...] = ()
    without_labels: tuple[str, ...] = ()
    whole_tags: tuple[str, ...] = ()
    prose: bool = False

    @property
    def identity(self) -> str:
        """Names the query: with other words or labels, what was read before must be read again."""
        asked = [self.settled, self.prose, *map(sorted, (self.labels, self.without_labels, self.whole_tags))]
        words = self.keywords.pattern if self.keywords else ""
        return f"{self.name}:{hashlib.sha256(repr((words, asked)).encode()).hexdigest()[:8]}"

    def wants(self, post: Post, *, settled: bool) -> bool:
        """Whether a post is what is asked for, by its state, its labels and its own words."""
        if self.settled and not settled:
            return False
        tags = {tag.lower() for tag in post.tags}
        if self.labels and tags.isdisjoint(label.lower() for label in self.labels):
            return False
        if not tags.isdisjoint(label.lower() for label in self.without_labels):
            return False
        if self.keywords is None or not tags.isdisjoint(tag.lower() for tag in self.whole_tags):
            return True
        body = _CODE.sub(" ", post.body) if self.prose else post.body
        return bool(self.keywords.search(post.title) or self.keywords.search(body))


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
        chosen = [replace(one, keywords=pattern) for one in chosen]
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
    for key in _LISTS:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise StudyError(f'{place}: {key} is a list of texts, like ["one", "two"].')
    for key in _SWITCHES:
        if not isinstance(table.get(key, False), bool):
            raise StudyError(f"{place}: {key} is true or false.")
    for key in ("keywords", "site"):
        if not isinstance(table.get(key, ""), str):
            raise StudyError(f"{place}: {key} is a text.")
    lists = {key: tuple(table.get(key, ())) for key in _LISTS}
    for repository in lists["repositories"]:
        if not _REPOSITORY.fullmatch(repository):
            raise StudyError(f"{place}: {repository!r} is no repository. Give it as OWNER/NAME.")
    if not lists["repositories"] and not table.get("site"):
        raise StudyError(f"{place}: needs `repositories` or `site`.")
    keywords = table.get("keywords")
    return Preset(
        name=name,
        repositories=lists["repositories"],
        discussions=table.get("discussions", False),
        site=table.get("site", ""),
        tags=lists["tags"],
        keywords=_compile(keywords, place) if keywords else None,
        settled=table.get("settled", False),
        labels=lists["labels"],
        without_labels=lists["without_labels"],
        whole_tags=lists["whole_tags"],
        prose=table.get("prose", False),
    )


def _compile(expression: str, place: str) -> re.Pattern[str]:
    try:
        return re.compile(expression, re.IGNORECASE)
    except re.error as error:
        raise StudyError(f"{place}: keywords {expression!r} is no regular expression ({error}).") from error
