"""Examines a checkpoint: reads it, looks through its numbers, and says what is wrong; nothing in it is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx.checkpoint_files.comparing import Expected, compare, expected_of
from phalanx.checkpoint_files.findings import findings_of
from phalanx.checkpoint_files.formats import format_of
from phalanx.checkpoint_files.judging import judge, other_world_size
from phalanx.checkpoint_files.model import STATES, Checkpoint, CheckpointError, Kind
from phalanx.checkpoint_files.values import Scanned, scan
from phalanx.model import Report, Unchecked, World
from phalanx.model.fact import Fact


@dataclass(frozen=True, slots=True)
class Options:
    """What to compare with, and how much to read."""

    against: Expected | None = None
    ranks: int | None = None  # that are to load it
    values: bool = True


@dataclass(frozen=True, slots=True)
class Examined:
    """A checkpoint with what was found."""

    checkpoint: Checkpoint
    facts: tuple[Fact, ...]
    report: Report
    summary: dict[str, Any]


def _quiet(_: str) -> None:
    return None


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint at a path. Raises CheckpointError if it is none."""
    kind = format_of(path)
    if kind is None:
        if not path.exists():
            raise CheckpointError(f"{path}: there is no such file or folder")
        if not (path.is_dir() or path.is_file()):
            raise CheckpointError(f"{path}: neither a regular file nor a folder")
        raise CheckpointError(f"{path}: not a checkpoint of a known format")
    return kind.read(path)


def is_checkpoint(path: Path) -> bool:
    """Whether a file or folder is a checkpoint. A folder with scripts in it is source, unless a format is certain of it."""
    try:
        kind = format_of(path)
        if kind is None or not path.is_dir() or kind.ORDER <= 40:
            return kind is not None
        return not any(one.suffix in (".py", ".ipynb") for one in path.iterdir())
    except (OSError, CheckpointError):
        return False


def examine(path: Path, options: Options | None = None, say: Callable[[str], None] = _quiet) -> Examined:
    """Everything that can be said of a checkpoint. Raises CheckpointError if it is none."""
    options = options or Options()
    say(f"reading {path}")
    found = read_checkpoint(path)
    scanned = scan(found.tensors, say) if options.values else Scanned([], [], 0, {})
    unchecked = [*found.unchecked, *([] if options.values else [Unchecked("values of the tensors", "--values")])]
    facts = judge(found, scanned)
    if options.ranks is not None:
        facts += other_world_size(found, options.ranks)
    if options.against is not None:
        facts += compare(found, options.against)
    report = Report(
        World(size=found.world_size, framework=found.framework),
        tuple(findings_of(facts, found.path)),
        tuple(dict.fromkeys(unchecked)),
        tuple(part.file for part in found.parts),
    )
    return Examined(found, tuple(facts), report, summary_of(found, scanned))


def against_checkpoint(path: Path) -> Expected:
    """Another checkpoint to compare with."""
    return expected_of(read_checkpoint(path), path.name)


def summary_of(found: Checkpoint, scanned: Scanned) -> dict[str, Any]:
    """What the checkpoint holds, as JSON; present in every report, whatever is wrong."""
    weights = found.weights()
    by_dtype: Counter[str] = Counter()
    for one in weights.values():
        by_dtype[one.dtype or "unknown"] += 1
    states = {}
    for name in STATES:
        holders = [part for part in found.parts if name in part.states]
        ranks = sorted(part.rank for part in holders if part.rank is not None)
        if holders:
            states[name] = {"state": holders[0].states[name], "files": len(holders), "ranks": ranks}
    stamps: dict[str, Any] = {}
    for part in found.parts:
        for name, value in part.stamps.items():
            stamps.setdefault(name, []).append(value) if value not in stamps.get(name, []) else None
    return {
        "path": str(found.path),
        "format": found.format,
        "step": found.step,
        "complete": found.is_complete,
        "world_size": found.world_size,
        "parallelism": found.parallelism,
        "files": len(found.parts),
        "bytes": sum(part.bytes for part in found.parts),
        "tensors": {"model": len(weights), "optimizer": sum(one.kind is Kind.OPTIMIZER for one in found.tensors)},
        "parameters": sum(_count(one.full_shape) for one in weights.values()),
        "dtypes": dict(by_dtype.most_common()),
        "states": states,
        "lacks": [name for name in STATES if name not in states],
        "stamps": stamps,
        "needs": sorted({name for part in found.parts for name in part.needs})[:20],
        "values_read": scanned.read,
    }


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for side in shape:
        count *= side
    return count
