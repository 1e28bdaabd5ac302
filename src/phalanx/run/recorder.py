"""The seam to a recorder: a folder that leads the ranks' PYTHONPATH, and what it is told. This package knows no more of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from phalanx.frameworks.launching import Launchable
from phalanx.model import bundle as layout

VARIABLE = "PHALANX_RECORD"


@runtime_checkable
class HasBackend(Protocol):
    """A framework that computes with another one."""

    def backend(self, environment: Mapping[str, str]) -> str:
        """Which."""


@dataclass(frozen=True, slots=True)
class Recorder:
    """What is loaded into every rank beside the watch. It takes its variables away before the script sees them."""

    folder: Path
    settings: Mapping[str, Any]  # JSON values, the same for every rank
    frameworks: frozenset[str]  # that it can record
    refused: tuple[str, ...] = ()  # modules whose import in a script says that it cannot
    make_room: Callable[[], int] | None = None  # memory of a rank that is to outlive it
    save: Callable[[Path, int], object] | None = None  # what is in it, to the rank's record
    variable: str = VARIABLE  # by which a rank is told its settings
    beside: tuple[Path, ...] = ()  # further folders that it takes modules from

    @property
    def mode(self) -> str:
        """Its mode, for messages."""
        return str(self.settings.get("mode", ""))

    def refusal(self, framework: Launchable, told_by: str, environment: Mapping[str, str]) -> str:
        """Why a job cannot be recorded; empty if it can."""
        name = framework.NAME
        backend = framework.backend(environment) if isinstance(framework, HasBackend) else name
        word = next((word for word in self.refused if word in told_by), name if name not in self.frameworks else "")
        if not word and backend not in self.frameworks:
            word = f"{name} on {backend}"
        if not word:
            return ""
        able = ", ".join(sorted(self.frameworks))
        if self.variable != VARIABLE:
            return f"phalanx verify cannot look into jobs of {word}; it works for {able}"
        return f"--record={self.mode}: jobs of {word} cannot be recorded so; it works for {able}"

    def open_room(self) -> int | None:
        """A descriptor to hand to one rank, where the recorder keeps something in memory."""
        if self.make_room is not None:
            with suppress(OSError):  # then the rank has memory of its own, which dies with it
                return self.make_room()
        return None

    def close_room(self, attempt: Path, rank: int, room: int) -> None:
        """The rank is gone: save what it held and did not write."""
        with suppress(Exception):  # a recording is never worth the job
            if self.save is not None:
                self.save(layout.rank_folder(attempt, rank) / layout.RECORD, room)
        os.close(room)

    def variables(
        self, attempt: Path, rank: int, size: int, inherited: Mapping[str, str], room: int | None = None
    ) -> dict[str, str]:
        """Variables to set for one rank of an attempt."""
        place = attempt.resolve()
        told = dict(self.settings) | {
            "rank": rank,
            "size": size,
            "folder": str(layout.rank_folder(place, rank) / layout.RECORD),
            "request": str(place / layout.RECORD_REQUEST),
            "room": -1 if room is None else room,
        }
        found = {}
        if inherited.get("PYTHONHASHSEED", "random") == "random" and "seed" in self.settings:
            # Python salts its hashes by chance, and sets are ordered by them: the chance is made one that is written down.
            found["PYTHONHASHSEED"] = str((int(self.settings["seed"]) + rank) % (2**32 - 1) + 1)
        before = inherited.get("PYTHONPATH")
        path = os.pathsep.join([str(self.folder), *map(str, self.beside), *([before] if before else [])])
        return {**found, "PYTHONPATH": path, self.variable: json.dumps(told)}

    def ask(self, attempt: Path) -> None:
        """Ask living ranks to write what they hold in memory."""
        (attempt / layout.RECORD_REQUEST).touch(0o600)
