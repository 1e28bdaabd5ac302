"""One run of collecting: which APIs are asked for which presets, and what is said at the end."""

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from phalanx.study.collect import github, stackexchange
from phalanx.study.collect.duplicates import find_duplicates
from phalanx.study.collect.presets import Preset
from phalanx.study.collect.store import Counts, Store
from phalanx.study.collect.web import Web
from phalanx.study.dump.read import Engine, read_dump
from phalanx.study.errors import StudyError


@dataclass(frozen=True, slots=True)
class Options:
    """How to collect. Tokens are not among the options: they come from the environment only."""

    since: str = ""
    replies: bool = False
    github_api: str = github.API
    stackexchange_api: str = stackexchange.API
    longest_wait: float = 4000.0


@dataclass(frozen=True, slots=True)
class Collected:
    """What a run did, and what the collection holds now."""

    counts: Counts
    total: int
    duplicates: int
    across_sources: int
    parts: int
    problems: tuple[tuple[str, str, str, int], ...]
    rows: int = 0  # of a dump


def collect_all(
    presets: list[Preset],
    folder: Path,
    options: Options,
    tell: Callable[[str], None] = lambda _: None,
    environment: Mapping[str, str] = os.environ,
) -> Collected:
    """Ask the APIs for every preset; what was kept is finished up even if one of them fails."""
    since = _check_time(options.since)
    with Store(folder) as store:
        failures = []
        for preset in presets:
            try:
                _collect_preset(store, preset, options, since, tell, environment)
            except StudyError as error:
                # The other presets do not depend on this one.
                failures.append(str(error))
                tell(str(error))
        collected = finish(store)
    if failures:
        raise StudyError("; ".join(failures) + f" ({collected.counts.new} new posts were kept)")
    return collected


def collect_dump(
    presets: list[Preset],
    folder: Path,
    dump: Path,
    engine: Engine,
    tell: Callable[[str], None] = lambda _: None,
) -> Collected:
    """Read a dump for every preset that names a site."""
    with Store(folder) as store:
        rows = 0
        for preset in presets:
            rows += read_dump(store, preset, dump, engine, tell).rows
        return finish(store, rows)


def finish(store: Store, rows: int = 0) -> Collected:
    """Mark duplicates, write Parquet, count."""
    duplicates = find_duplicates(store.posts())
    store.mark_duplicates(duplicates)
    parts = store.export()
    across = sum(key.partition(":")[0] != kept.partition(":")[0] for key, kept in duplicates.items())
    return Collected(store.counts, len(store), len(duplicates), across, len(parts), tuple(store.problems()), rows)


def _collect_preset(
    store: Store,
    preset: Preset,
    options: Options,
    since: str,
    tell: Callable[[str], None],
    environment: Mapping[str, str],
) -> None:
    if preset.repositories:
        token = environment.get("GITHUB_TOKEN") or environment.get("GH_TOKEN")
        web = Web(options.github_api, github.headers_for(token), options.longest_wait, tell)
        with closing(web):
            for repository in preset.repositories:
                tell(f"{preset.name}: issues of {repository}")
                github.collect_issues(web, store, preset, repository, since, options.replies)
                if preset.discussions and token:
                    tell(f"{preset.name}: discussions of {repository}")
                    github.collect_discussions(web, store, preset, repository)
                elif preset.discussions:
                    store.note(f"github:{repository}", "discussions were not read: GraphQL needs GITHUB_TOKEN")
    if preset.site:
        key = environment.get("STACKEXCHANGE_KEY")
        web = Web(options.stackexchange_api, {"User-Agent": "phalanx-study"}, options.longest_wait, tell)
        with closing(web):
            tell(f"{preset.name}: questions of {preset.site}")
            stackexchange.collect_questions(web, store, preset, since, key, options.replies)


def _check_time(text: str) -> str:
    if not text:
        return ""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise StudyError(
            f"--since {text!r} is no time. Give it like 2025-01-31 or 2025-01-31T12:00:00+00:00."
        ) from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
