"""The seam to a recorder: a folder that leads the ranks' PYTHONPATH, and what it is told. This package knows no more of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx.model import bundle as layout

VARIABLE = "PHALANX_RECORD"


@dataclass(frozen=True, slots=True)
class Recorder:
    """What is loaded into every rank beside the watch. It takes its variables away before the script sees them."""

    folder: Path
    settings: Mapping[str, Any]  # JSON values, the same for every rank
    frameworks: frozenset[str]  # that it can record

    @property
    def mode(self) -> str:
        """Its mode, for messages."""
        return str(self.settings.get("mode", ""))

    def variables(self, attempt: Path, rank: int, size: int, inherited: Mapping[str, str]) -> dict[str, str]:
        """Variables to set for one rank of an attempt."""
        place = attempt.resolve()
        told = dict(self.settings) | {
            "rank": rank,
            "size": size,
            "folder": str(layout.rank_folder(place, rank) / layout.RECORD),
            "request": str(place / layout.RECORD_REQUEST),
        }
        found = {}
        if inherited.get("PYTHONHASHSEED", "random") == "random" and "seed" in self.settings:
            # Python salts its hashes by chance, and sets are ordered by them: the chance is made one that is written down.
            found["PYTHONHASHSEED"] = str((int(self.settings["seed"]) + rank) % (2**32 - 1) + 1)
        before = inherited.get("PYTHONPATH")
        path = f"{self.folder}{os.pathsep}{before}" if before else str(self.folder)
        return {**found, "PYTHONPATH": path, VARIABLE: json.dumps(told)}

    def ask(self, attempt: Path) -> None:
        """Ask living ranks to write what they hold in memory."""
        (attempt / layout.RECORD_REQUEST).touch()
