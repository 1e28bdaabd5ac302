"""A minimal reproducer: one folder that a colleague runs with `python repro.py`, without Phalanx and without the other ranks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx.replay.beginning import begin_at
from phalanx.replay.command import Command, taken_variables
from phalanx.replay.inside.phalanx_record.journal import Journal
from phalanx.replay.inside.phalanx_record.records import BrokenRecordError, Records
from phalanx.replay.record import INSIDE
from phalanx.replay.recordings import Recording, ReplayError, lines_of
from phalanx.sources.secrets import redact


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    folder: Path
    begin: int
    last: int
    size: int  # bytes, of everything
    left_out: tuple[str, ...]


def export(
    recording: Recording,
    rank: int,
    command: Command,
    folder: Path,
    first: int | None,
    last: int | None,
    include: Sequence[Path],
    trusts_objects: bool,
) -> Exported:
    """Write the folder. It holds what this rank needs from its begin to its end, and none of the user's data unless named."""
    if recording.mode == "light":
        raise ReplayError(
            "this recording is light: it has no results of collectives to export; use --record=ring or full"
        )
    if rank not in recording.ranks:
        raise ReplayError(f"rank {rank} left no recording in {recording.attempt}")
    if folder.exists() and any(folder.iterdir()):
        raise ReplayError(f"--export {folder}: the folder is not empty; give a new one")
    begin = begin_at(recording, [rank], first)
    end = int(recording.ranks[rank].get("steps", 0)) if last is None else last
    folder.mkdir(parents=True, exist_ok=True)
    _copy_record(recording, rank, folder / "recording", begin, end)
    left_out = _copy_sources(recording, rank, command, folder / "script", include)
    shutil.copytree(INSIDE, folder / "inside", ignore=shutil.ignore_patterns("__pycache__"))
    settings = {
        "replays": True,
        "rank": rank,
        "size": recording.size,
        "seed": int(recording.ranks[rank].get("seed", 0)),
        "mode": recording.mode,
        "first": begin,
        "last": -1 if last is None else last,
        "trusts_objects": trusts_objects,
    }
    words = [str(word) for word in command.argv[1:]]
    variables = taken_variables(recording.environment(rank), command.sources)
    salt = str(recording.ranks[rank].get("software", {}).get("PYTHONHASHSEED", ""))
    variables |= {"PYTHONHASHSEED": salt} if salt.isdigit() else {}
    facts = {"command": words, "settings": settings, "environment": variables}
    (folder / "repro.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    shutil.copyfile(Path(__file__).with_name("repro.py"), folder / "repro.py")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    done = Exported(folder, begin, end, size, tuple(left_out))
    (folder / "README.md").write_text(_readme(recording, rank, words, done), encoding="utf-8")
    return done


def _copy_record(recording: Recording, rank: int, target: Path, begin: int, end: int) -> None:
    """The rank's log, and of the results those that the replay needs, put together from all ranks' shares."""
    records = Records(str(recording.attempt.resolve()))
    try:
        record = records.of(rank)
    except BrokenRecordError as error:
        raise ReplayError(str(error)) from error
    place = target / f"rank{rank}" / "record"
    journal = Journal(str(place))
    meta = dict(record.meta)
    meta.pop("schema", None)
    journal.meta(schema="phalanx.record/1", **meta)
    sizes = {int(line["n"]): (key, line) for key, line in record.calls.items()}
    for line in lines_of(recording.folder(rank)):
        kind = line.pop("k")
        if kind == "data" or (kind in ("call", "done") and _step_of(line, sizes) > end):
            continue
        if kind == "done":
            line.pop("at", None)
            line.pop("share", None)
            line.pop("of", None)
            _copy_result(records, journal, rank, line, sizes, begin)
        journal.line(kind, **line)
    journal.close()
    if begin:
        kind = "snapshot" if recording.mode == "ring" else "checkpoint"
        name = f"{kind}-{begin:08d}"
        shutil.copytree(recording.folder(rank) / name, place / name)


def _step_of(line: dict[str, Any], sizes: dict[int, Any]) -> int:
    found = sizes.get(int(line["n"]))
    return int(found[1]["s"]) if found is not None else 0


def _copy_result(
    records: Records, journal: Journal, rank: int, line: dict[str, Any], sizes: dict[int, Any], begin: int
) -> None:
    number = int(line["n"])
    if number not in sizes or not line.get("out"):
        return
    (group, place), call = sizes[number]
    own = records.of(rank).piece(number)
    if own is None or (own[1] - own[0] > 4096 and int(call["s"]) < begin):
        return  # not kept, or of a step that the replay passes over
    size = int(records.of(rank).data[number]["of"])
    try:
        data = records.result(rank, group, place, size)
    except BrokenRecordError:
        return  # a share is missing: the replay will say so when it comes there
    line["at"] = journal.tensor(str(number), data)
    line["share"], line["of"] = [0, size], size


def _copy_sources(
    recording: Recording, rank: int, command: Command, target: Path, include: Sequence[Path]
) -> list[str]:
    names = list(recording.ranks[rank].get("sources", {}))
    left_out = []
    base = command.sources.resolve()
    for name in names:
        path = (base / name).resolve()
        if not path.is_relative_to(base) or not path.is_file():
            left_out.append(name)
            continue
        place = target / path.relative_to(base)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(redact(path.read_text(encoding="utf-8", errors="replace")), encoding="utf-8")
    for path in include:
        whole = path.resolve()
        if not whole.exists():
            raise ReplayError(f"--include {path}: no such file")
        place = target / (whole.relative_to(base) if whole.is_relative_to(base) else whole.name)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(whole, place) if whole.is_dir() else shutil.copyfile(whole, place)
    return left_out


def _readme(recording: Recording, rank: int, words: list[str], done: Exported) -> str:
    software = recording.ranks[rank].get("software", {})
    rows = "\n".join(f"- {name}: {value}" for name, value in software.items())
    missing = "".join(f"\n- not found when this was made: {name}" for name in done.left_out)
    return f"""# Rank {rank} of {recording.size}, alone

    python repro.py            # runs `{" ".join(words)}` as rank {rank}; add --pdb to stop where it differs or fails

Collectives are answered from the recording; no other rank, no network and no package beside the script's own is needed. Steps
{done.begin} to {done.last} are in it{", from a checkpoint" if done.begin else ""}. {done.size / 1e6:.1f} MB.

Left out: data that the script reads (name it with `--include`), secrets in sources and variables.{missing}

## Recorded with
{rows}

With the same of these the same bits come out; with others the replay shows where it differs, and last bits mean nothing.
"""
