"""Reads the bundle that `phalanx run` leaves behind: which of its files are evidence, and what its records tell.

manifest.json    {"schema": "phalanx.bundle/1", "size": 4, "framework": "torch", "attempts": [{"reason": …}]}
exit.json        {"schema": "phalanx.exit/1", "rank": 2, "code": -9, "by": null, "order": 0, "why": {"text": …}}
watch.jsonl      {"kind": "stall", "ranks": [2], "text": "…", "data": {"missing": [2]}, "facts": [{"fact": "stall.waits-for-rank", …}]}

Only the last attempt is diagnosed: the earlier ones were got over, or failed as it did. Why they ended is told beside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from phalanx.model import Event, EventKind, bundle
from phalanx.model.fact import Fact
from phalanx.model.facts import fact_from_json, make_fact
from phalanx.model.foreign import read_object
from phalanx.sources.text import clean_text

_EXIT_SCHEMA = "phalanx.exit/1"
_NUMBERED = re.compile(r"(?P<what>stacks|collectives)-(?P<number>\d+)\.(?:txt|json|pickle)")
_WATCH = re.compile(r"watch(?:-[\w.-]+)?\.jsonl")
_EVIDENCE = (bundle.OUTPUT, bundle.EXIT, "error.json")
END_OF_SERVICE = "end of service"
# Only what ends or slows a job is an event; the rest of the watch's notes is for people.
_KINDS = {"stall": EventKind.STALL, "recovered": EventKind.PROGRESS}


def is_bundle(folder: Path) -> bool:
    """Whether a folder is a bundle, by what its manifest says."""
    return str(read_manifest(folder).get("schema", "")).startswith("phalanx.bundle/")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest; empty if there is none."""
    try:
        loaded = read_object(folder / bundle.MANIFEST)
    except (OSError, ValueError):
        return {}
    return loaded if isinstance(loaded.get("schema"), str) else {}


def was_cut_off(folder: Path) -> bool:
    """Whether the job's launcher was killed: it never wrote the end down, and nobody holds the bundle any more."""
    manifest = read_manifest(folder)
    is_open = manifest.get("state") == "running" and "attached" not in manifest  # `attach` sees a job that goes on
    return is_open and not bundle.is_held(folder)


def evidence_of(folder: Path) -> list[Path]:
    """The files of the last attempt that a diagnosis reads, the manifest first."""
    found = [folder / bundle.MANIFEST]
    attempts = bundle.attempts_of(folder)
    if not attempts:
        return found
    found += sorted(path for path in attempts[-1].glob("watch*.jsonl") if is_watch(path.name) and path.is_file())
    found += sorted(path for name in bundle.BESIDE_RANKS for path in attempts[-1].glob(name))
    for rank in sorted(attempts[-1].glob("rank*"), key=lambda path: (len(path.name), path.name)):
        found += [path for name in _EVIDENCE if (path := rank / name).is_file()]
        found += sorted(rank.glob("output-*.log"))  # another stream, where it went to a file of its own
        found += _last_snapshot(rank)
    return found


def roles_in(folder: Path) -> dict[int, str]:
    """`ps 0` by rank, where the job had roles."""
    found: dict[int, str] = {}
    attempts = bundle.attempts_of(folder) if folder.is_dir() else []
    for path in attempts[-1].glob(f"rank*/{bundle.PROCESS}") if attempts else ():
        try:
            told = read_object(path)
            found[int(told["rank"])] = str(told["role"]).replace(":", " ")
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _last_snapshot(rank: Path) -> Iterator[Path]:
    """The newest stacks and the newest trace; older ones show where the rank no longer is."""
    newest: dict[str, tuple[int, Path]] = {}
    for path in rank.iterdir():
        if (match := _NUMBERED.fullmatch(path.name)) is not None:
            newest[match["what"]] = max(newest.get(match["what"], (-1, path)), (int(match["number"]), path))
    return (path for _, path in sorted(newest.values()))


def earlier_attempts(folder: Path) -> list[str]:
    """Why each earlier attempt ended, oldest first."""
    attempts = read_manifest(folder).get("attempts")
    return [
        f"attempt {attempt.get('attempt')}: {why_ended(folder, attempt)}; started again"
        for attempt in (attempts if isinstance(attempts, list) else ())
        if isinstance(attempt, dict) and attempt.get("restarted")
    ]


def why_ended(folder: Path, attempt: Mapping[str, Any]) -> str:
    """The reason of an attempt's end, with what the rank that broke it died of: `rank 1 ended with exit status 1 (ValueError: …)`."""
    reason, ranks = str(attempt.get("reason")), attempt.get("first_ranks")
    if not isinstance(ranks, list) or len(ranks) != 1 or not isinstance(attempt.get("attempt"), int):
        return reason
    file = bundle.rank_folder(bundle.attempt_folder(folder, attempt["attempt"]), ranks[0]) / bundle.EXIT
    try:
        why = read_object(file).get("why") or {}
    except (OSError, ValueError):
        return reason
    told = why.get("text") or why.get("error") if isinstance(why, dict) else None
    return f"{reason} ({told})" if told else reason


def read_exit(name: str, record: Mapping[str, Any]) -> Event | None:
    """How a rank ended; None if the record is another one."""
    if record.get("schema") != _EXIT_SCHEMA:
        return None
    try:
        rank, code = int(record["rank"]), int(record["code"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    why = record.get("why") if isinstance(record.get("why"), dict) else {}
    by = record.get("by")
    if by == END_OF_SERVICE:
        code = 0  # a server that was told that its work is done
    text = f"rank {rank} ended with {record.get('how', code)}"
    if isinstance(why, dict) and why.get("text"):
        text += f": {why['text']}"
    if by:
        # why is in `by`: in the text, rules would take it for what this rank died of
        text += " (ended by the launcher)"
    data = {"code": code, "by": by, "order": record.get("order"), "why": why}
    died = _death(rank, why) if isinstance(why, dict) and why.get("cause") else None
    return Event(EventKind.EXIT, clean_text(text), name, 1, rank, source="bundle", data=data, fact=died)


def _death(rank: int, why: Mapping[str, Any]) -> Fact:
    """How a process died, from what the watch wrote down of it."""
    told = {
        name: str(why[name]) for name in ("cause", "signal", "place", "library", "node") if why.get(name) is not None
    }
    return make_fact("rank.died", {**told, "why": str(why.get("text") or "")}, ranks=(rank,), source="watch")


def _ranks_in(value: object) -> tuple[int, ...]:
    return tuple(rank for rank in value if isinstance(rank, int)) if isinstance(value, (list, tuple)) else ()


def read_watch(name: str, text: str) -> list[Event]:
    """What the watch saw. A last line that was cut off by a kill is left out."""
    events: list[Event] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            seen = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(seen, dict) or str(seen.get("kind")) not in _KINDS | {
            "death": 0,
            "straggler": 0,
            "network": 0,
            "calls": 0,
        }:
            continue
        kind = _KINDS.get(seen["kind"], EventKind.LINE)
        data = seen.get("data") if isinstance(seen.get("data"), dict) else {}
        ranks = _ranks_in(seen.get("ranks"))
        only = ranks[0] if len(ranks) == 1 and seen["kind"] in ("death", "straggler", "calls") else None
        told = {**(data or {}), "seen": seen["kind"], "ranks": ranks}
        told["missing"] = _ranks_in(told.get("missing"))
        event = Event(kind, clean_text(str(seen.get("text", ""))), name, number, only, source="watch", data=told)
        written = seen["facts"] if isinstance(seen.get("facts"), list) else []
        facts = [fact for item in written if (fact := fact_from_json(item, "watch")) is not None]
        events.extend(replace(event, fact=fact) for fact in facts)
        if not facts:
            events.append(event)
    return events


def is_watch(name: str) -> bool:
    """Whether a file is the watch's record, by its name; nodes that write one bundle have each its own (`watch-node7.jsonl`)."""
    return _WATCH.fullmatch(name.rsplit("/", 1)[-1]) is not None
