"""A minimal reproducer: one folder that a colleague runs with `python repro.py`, without Phalanx and without the other ranks."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx import private
from phalanx.replay.beginning import begin_at
from phalanx.replay.command import Command, taken_variables
from phalanx.replay.inside.phalanx_record.journal import Journal
from phalanx.replay.inside.phalanx_record.records import BrokenRecordError, Records
from phalanx.replay.record import INSIDE
from phalanx.replay.recordings import Recording, ReplayError, lines_of
from phalanx.sources.secrets import redact_source


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
    shares: bool = False,
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
    end = _last_step(recording, rank) if last is None else last
    begin = _begin(recording, rank, first, end)
    root, words = _layout(command)
    private.make_folder(folder)
    _copy_record(recording, rank, folder / "recording", begin, end)
    left_out = _copy_sources(recording, rank, command, root, folder / "script", include)
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
    variables = taken_variables(recording.environment(rank), command.sources)
    salt = str(recording.ranks[rank].get("software", {}).get("PYTHONHASHSEED", ""))
    variables |= {"PYTHONHASHSEED": salt} if salt.isdigit() else {}
    sources = command.sources.resolve().relative_to(root).as_posix()
    facts = {"command": words, "sources": sources, "settings": settings, "environment": variables}
    (folder / "repro.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    shutil.copyfile(Path(__file__).with_name("repro.py"), folder / "repro.py")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    done = Exported(folder, begin, end, size, tuple(left_out))
    (folder / "README.md").write_text(_readme(recording, rank, words, done), encoding="utf-8")
    private.share(folder) if shares else private.make_private(folder)
    return done


def _last_step(recording: Recording, rank: int) -> int:
    """How far the rank came, by its log: one that was killed has told nobody else."""
    return max((int(line["s"]) for line in lines_of(recording.folder(rank)) if "s" in line), default=0)


def _begin(recording: Recording, rank: int, first: int | None, end: int) -> int:
    """Where nothing is asked for, as near before the last step as a state was kept: the reproducer is to be small."""
    if first is None:
        with contextlib.suppress(ReplayError):
            return begin_at(recording, [rank], max(end - 1, 0))
    return begin_at(recording, [rank], first)


def _layout(command: Command) -> tuple[Path, list[str]]:
    """The folder that the reproducer's stands for, and what is run in it: the one that the user stands in, if the script lies below."""
    here, sources = command.folder.resolve(), command.sources.resolve()
    root = here if sources.is_relative_to(here) else sources
    words = [str(word) for word in command.argv[1:]]
    if words[0] != "-m":
        words[0] = (here / words[0]).resolve().relative_to(root).as_posix()
    return root, words


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
        shutil.copytree(recording.folder(rank) / name, place / name, symlinks=True)


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
    recording: Recording, rank: int, command: Command, root: Path, target: Path, include: Sequence[Path]
) -> list[str]:
    # A bundle may name anything; what is no source is data, or somebody's secret.
    names = [name for name in recording.ranks[rank].get("sources", {}) if name.endswith(".py")]
    left_out = []
    base = command.sources.resolve()
    for name in names:
        path = (base / name).resolve()
        if not path.is_relative_to(base) or not path.is_file():
            left_out.append(name)
            continue
        place = target / path.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(redact_source(path.read_text(encoding="utf-8", errors="replace")), encoding="utf-8")
    for path in include:
        whole = path.resolve()
        if not whole.exists():
            raise ReplayError(f"--include {path}: no such file")
        place = target / (whole.relative_to(root) if whole.is_relative_to(root) else whole.name)
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
