"""Weights in numbered files with an index (`model.safetensors.index.json`, `pytorch_model.bin.index.json`), or in one file."""

from __future__ import annotations

import re
from pathlib import Path

from phalanx.checkpoint_files.model import Checkpoint, CheckpointError, Kind, Trouble
from phalanx.checkpoint_files.reading import size_of
from phalanx.checkpoint_files.safetensors_file import take_safetensors
from phalanx.checkpoint_files.taking import entries_of, inside, read_json, shown_in, take_torch

NUMBERED = re.compile(r"^(?P<base>.+)-(?P<number>\d{5})-of-(?P<of>\d{5})\.(?P<end>safetensors|bin)$")


def take_weights(found: Checkpoint, path: Path) -> None:
    """Add one file of weights."""
    if path.name.endswith(".safetensors"):
        take_safetensors(found, path)
    else:
        take_torch(found, path)


def take_index(found: Checkpoint, index: Path) -> None:
    """Add the files that an index names, and compare what it says with what they hold."""
    shown, folder = shown_in(found, index), index.parent
    try:
        said = read_json(index)
        names = said["weight_map"]
        assert isinstance(names, dict)
    except CheckpointError as error:
        found.trouble(Trouble.TRUNCATED if not size_of(index) else Trouble.CORRUPT, shown, str(error))
        return
    except (KeyError, TypeError, AssertionError):
        found.trouble(Trouble.CORRUPT, shown, "it has no weight_map")
        return
    wanted = sorted({name for name in names.values() if isinstance(name, str)})
    for name in wanted:
        path = inside(folder, name)
        if path is None:
            found.trouble(Trouble.CORRUPT, shown, f"it names {name[:80]!r}, outside of the folder")
            continue
        take_weights(found, path)
    held: dict[str, set[str]] = {}
    for part in found.parts:
        held[part.file] = {tensor.name for tensor in part.tensors if tensor.kind is not Kind.OTHER}
    bad = {problem.file for problem in found.problems}
    for name in wanted:
        file = shown_in(found, folder / name)
        lost = [key for key, place in names.items() if place == name and key not in held.get(file, set())]
        if lost and file not in bad:
            many = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            found.trouble(
                Trouble.CORRUPT, file, f"the index places {lost[0][:80]}{many} in it, and it does not hold them"
            )
    if wanted and found.world_size is None:
        found.parallelism["files"] = len(wanted)
    take_strays(found, folder, set(wanted))


def take_strays(found: Checkpoint, folder: Path, wanted: set[str]) -> None:
    """Numbered files that no index names: of another save, or of one whose index is missing."""
    sets: dict[tuple[str, int, str], dict[int, Path]] = {}
    for one in entries_of(folder):
        named = NUMBERED.match(one.name)
        if named and one.name not in wanted:
            sets.setdefault((named["base"], int(named["of"]), named["end"]), {})[int(named["number"])] = one
    for (base, of, end), numbered in sets.items():
        if wanted:
            for one in numbered.values():
                found.trouble(Trouble.STALE, shown_in(found, one), "the index does not name it")
            continue
        index = f"{base}.{end}.index.json"
        found.trouble(
            Trouble.MISSING, index, f"{len(numbered)} of {of} files are there, the index that joins them is not"
        )
        for number in range(1, min(of, 100_000) + 1):
            if number in numbered:
                take_weights(found, numbered[number])
            else:
                name = f"{base}-{number:05d}-of-{of:05d}.{end}"
                found.trouble(Trouble.MISSING, shown_in(found, folder / name), "its name is one of a row")
