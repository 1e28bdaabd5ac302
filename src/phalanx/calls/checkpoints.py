"""For code inside a function: which attempt this is, and where the last checkpoint is. Imports nothing of ours."""

from __future__ import annotations

import os
from pathlib import Path

_UNFINISHED = (".tmp", ".part", ".new", ".incomplete")


def attempt() -> int:
    """0 for the first start of the job, 1 for the first retry. 0 outside of a call."""
    given = os.environ.get("PHALANX_ATTEMPT", "0")
    return int(given) if given.isdigit() else 0


def checkpoints() -> Path | None:
    """The folder that all attempts share; None where the function named none."""
    given = os.environ.get("PHALANX_CHECKPOINTS")
    return Path(given) if given else None


def last_checkpoint(folder: str | Path | None = None) -> Path | None:
    """The newest entry of the folder, a file or a folder; None if there is none yet. What is still being written, by the
    ending of its name or a dot before it, does not count."""
    where = Path(folder) if folder is not None else checkpoints()
    if where is None or not where.is_dir():
        return None
    found = [path for path in where.iterdir() if not path.name.startswith(".") and path.suffix not in _UNFINISHED]
    # The name breaks ties: all ranks must choose the same one.
    return max(found, key=lambda path: (path.stat().st_mtime_ns, path.name), default=None)
