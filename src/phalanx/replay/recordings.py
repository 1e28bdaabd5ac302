"""Finds the recording in a bundle and what it was made of; every fault of it is a sentence for the user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx.model import bundle as layout
from phalanx.model.foreign import read_json, read_object
from phalanx.replay.inside.phalanx_record.fingerprints import NAME
from phalanx.replay.inside.phalanx_record.journal import LOG, whole_lines

_RANK = re.compile(r"rank(\d{1,7})")
_MOST_RANKS = 1 << 20
_TABLES = ("sources", "software")


class ReplayError(Exception):
    """What was asked for cannot be done; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The recording of one attempt."""

    bundle: Path
    attempt: Path
    manifest: dict[str, Any]
    ranks: dict[int, dict[str, Any]]  # each rank's meta.json

    @property
    def size(self) -> int:
        """How many ranks the job had."""
        return int(self.manifest["size"])

    @property
    def mode(self) -> str:
        """light, ring or full."""
        return str(next(iter(self.ranks.values())).get("mode", "light"))

    def folder(self, rank: int) -> Path:
        """Where a rank's record is."""
        return layout.rank_folder(self.attempt, rank) / layout.RECORD

    def environment(self, rank: int) -> dict[str, str]:
        """The variables that the rank had, secrets redacted."""
        try:
            found = read_object(layout.rank_folder(self.attempt, rank) / layout.ENVIRONMENT)
        except (OSError, ValueError):
            return {}
        return {name: str(value) for name, value in found.items() if "\0" not in f"{name}{value}"}


def open_recording(bundle: Path, attempt: int | None = None) -> Recording:
    """The recording of the last attempt, or of the one asked for."""
    try:
        manifest = read_json(bundle / layout.MANIFEST)
    except (OSError, ValueError) as error:
        raise ReplayError(f"{bundle} is no bundle of `phalanx run`: {error}") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("command"), list):
        raise ReplayError(f"{bundle}: its manifest does not say what was run")
    if not isinstance(manifest.get("size"), int) or not 0 < manifest["size"] <= _MOST_RANKS:
        raise ReplayError(f"{bundle}: its manifest does not say how many ranks there were")
    folders = layout.attempts_of(bundle)
    if attempt is not None:
        folders = [folder for folder in folders if folder.name == f"attempt{attempt}"]
    for folder in reversed(folders):
        if ranks := _ranks(folder):
            made_by = {str(meta.get("fingerprints", NAME)) for meta in ranks.values()} - {NAME}
            if made_by:
                raise ReplayError(
                    f"{bundle} was recorded by another release: its fingerprints are {made_by.pop()!r}, not {NAME!r}"
                )
            return Recording(bundle, folder, manifest, ranks)
    which = f"attempt {attempt} of " if attempt is not None else ""
    raise ReplayError(f"there is no recording in {which}{bundle}: run the job with `phalanx run --record=full …`")


def _ranks(attempt: Path) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for folder in attempt.iterdir():
        match = _RANK.fullmatch(folder.name)
        if match is None:
            continue
        try:
            meta = read_object(folder / layout.RECORD / "meta.json")
        except (OSError, ValueError):
            continue
        if meta.get("schema") == "phalanx.record/1":
            found[int(match[1])] = {**meta, **{name: _words(meta.get(name)) for name in _TABLES if name in meta}}
    return dict(sorted(found.items()))


def _words(value: object) -> dict[str, str]:
    return {name: str(one) for name, one in value.items()} if isinstance(value, dict) else {}


@contextmanager
def damage_is_told(bundle: Path) -> Iterator[None]:
    """A recording that is not what it should be is a sentence for the user, wherever that shows."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise ReplayError(
            f"the recording in {bundle} is damaged: {type(error).__name__}: {str(error)[:200]}"
        ) from error


def lines_of(record: Path) -> list[dict[str, Any]]:
    """The whole lines of a rank's log."""
    return whole_lines(str(record / LOG))
