"""What formats share: a file of a checkpoint read into a part, with its problems noted in plain words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from phalanx.checkpoint_files.inventory import harmful, part_of
from phalanx.checkpoint_files.model import NOT_THERE, Checkpoint, CheckpointError, Part, Trouble
from phalanx.checkpoint_files.reading import LARGEST_TEXT, read_bytes, size_of
from phalanx.checkpoint_files.torch_file import TorchFile, read_torch
from phalanx.model import Unchecked

_MOST_FILES = 100_000


def take_torch(found: Checkpoint, path: Path, rank: int | None = None) -> tuple[Part, TorchFile] | None:
    """Add a file of torch.save to a checkpoint; None if it is not there or nothing of it can be read."""
    shown = shown_in(found, path)
    if size_of(path) < 0:
        found.trouble(Trouble.MISSING, shown, NOT_THERE if not path.exists() else "it is no regular file", rank)
        return None
    try:
        read = read_torch(path)
    except CheckpointError as error:
        found.trouble(Trouble.CORRUPT, shown, str(error), rank)
        return None
    if bad := harmful(read.globals):
        found.trouble(Trouble.RUNS_CODE, shown, ", ".join(bad[:4]), rank)
    if read.broken:
        found.trouble(Trouble.TRUNCATED if read.truncated else Trouble.CORRUPT, shown, read.broken, rank)
    if read.unread:
        found.unchecked.append(Unchecked(f"values in {shown}", f"another way to read it: {read.unread}"))
    part = part_of(read, shown, rank)
    found.parts.append(part)
    return part, read


def shown_in(found: Checkpoint, path: Path) -> str:
    """A file's name as the report gives it: from the checkpoint's folder on."""
    return str(path.relative_to(found.path)) if path != found.path and path.is_relative_to(found.path) else path.name


def inside(folder: Path, name: Any) -> Path | None:
    """A file that another file names; None if the name leads out of the folder."""
    if not isinstance(name, str) or not name or name.startswith("/") or ".." in Path(name).parts or "\0" in name:
        return None
    return folder / name


def entries_of(folder: Path) -> list[Path]:
    """What a folder holds, in a fixed order; nothing if it cannot be listed."""
    try:
        found = []
        for one in folder.iterdir():
            found.append(one)
            if len(found) > _MOST_FILES:
                raise CheckpointError(f"{folder}: more than {_MOST_FILES:,} entries")
        return sorted(found, key=lambda path: natural(path.name))
    except OSError:
        return []


def natural(name: str) -> list[tuple[int, int, str]]:
    """Orders numbers in names by value: rank2 before rank10."""
    parts = re.findall(r"\d{1,18}|\D+|\d+", name)
    return [(0, int(part), "") if part.isdigit() and len(part) < 19 else (1, 0, part) for part in parts]


def read_json(path: Path) -> Any:
    """The JSON of a file. Raises CheckpointError."""
    try:
        return json.loads(read_bytes(path, most=LARGEST_TEXT))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: no JSON ({str(error)[:80]})") from error


def gaps(numbers: Iterable[int], count: int) -> list[int]:
    """Which of 0 … count-1 are not among the numbers."""
    there = set(numbers)
    return [one for one in range(min(count, 1 << 20)) if one not in there]
